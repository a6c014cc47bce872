//! A store with troubles that a test chooses.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tollgate::core::{Cell, CellKey, CellTransfer, Charge, Readings, Store, StoreError, Timestamp};
use tollgate::store::Memory;

/// What befalls one call.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// None.
    None,
    /// It is not carried out.
    Lost(StoreError),
    /// It is carried out, and nobody hears of it.
    Unheard(StoreError),
    /// It is carried out once the gate has a permit for it.
    Held(Arc<Semaphore>),
    /// It is carried out at once, and told when the gate has a permit for it.
    Late(Arc<Semaphore>),
}

/// A memory store; each call meets the next trouble, and the usual one when there is none left.
#[derive(Debug)]
pub(crate) struct Faulty {
    memory: Memory,
    usual: Mutex<Trouble>,
    next: Mutex<VecDeque<Trouble>>,
    /// How many calls arrived.
    calls: AtomicUsize,
}

impl Faulty {
    pub(crate) fn new() -> Self {
        Self {
            memory: Memory::default(),
            usual: Mutex::new(Trouble::None),
            next: Mutex::default(),
            calls: AtomicUsize::new(0),
        }
    }

    /// From now on, whenever nothing else was chosen.
    pub(crate) fn usually(&self, trouble: Trouble) {
        *self.usual.lock() = trouble;
    }

    /// For the next calls, one after the other.
    pub(crate) fn next(&self, troubles: impl IntoIterator<Item = Trouble>) {
        self.next.lock().extend(troubles);
    }

    /// No trouble any more but the usual one.
    pub(crate) fn clear(&self) {
        self.next.lock().clear();
    }

    /// How many calls arrived.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Faulty {
    /// Meets the next trouble; answers what `carry_out` does unless that is the trouble.
    async fn meet<T>(
        &self,
        carry_out: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let next = self.next.lock().pop_front();
        let trouble = next.unwrap_or_else(|| self.usual.lock().clone());
        match trouble {
            Trouble::None => carry_out.await,
            Trouble::Lost(error) => Err(error),
            Trouble::Unheard(error) => carry_out.await.and(Err(error)),
            Trouble::Held(gate) => {
                passed(&gate).await;
                carry_out.await
            }
            Trouble::Late(gate) => {
                let told = carry_out.await;
                passed(&gate).await;
                told
            }
        }
    }
}

async fn passed(gate: &Semaphore) {
    if let Ok(permit) = gate.acquire().await {
        permit.forget();
    }
}

impl Store for Faulty {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        // Not before the trouble is met: what the memory store is asked, it does at once.
        self.meet(async { self.memory.apply_now(now, charges) }).await
    }
}

impl CellTransfer for Faulty {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.meet(async { self.memory.cells(now, places).await }).await
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        self.meet(async { self.memory.join(now, cells).await }).await
    }
}
