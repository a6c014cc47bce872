//! A store with faults that a test chooses.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tollgate::model::{
    Cell, CellKey, CellTransfer, Charge, Readings, Store, StoreError, Timestamp,
};
use tollgate::store::Memory;

/// The fault of one call.
#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    /// No fault.
    None,
    /// The call is not executed, and its caller receives this error.
    Lost(StoreError),
    /// The call is executed, and its caller receives this error.
    Unheard(StoreError),
    /// The call is executed when the semaphore has a permit for the call.
    Held(Arc<Semaphore>),
    /// The call is executed at once, and answered when the semaphore has a permit for the call.
    Late(Arc<Semaphore>),
}

/// A memory store with faults. Each call uses the next queued fault. If the queue is empty, the
/// call uses the usual fault.
#[derive(Debug)]
pub(crate) struct Faulty {
    memory: Memory,
    usual: Mutex<Trouble>,
    next: Mutex<VecDeque<Trouble>>,
    /// The number of calls that arrived.
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

    /// Sets the fault of calls without a queued fault.
    pub(crate) fn usually(&self, trouble: Trouble) {
        *self.usual.lock() = trouble;
    }

    /// Queues faults for the next calls.
    pub(crate) fn next(&self, troubles: impl IntoIterator<Item = Trouble>) {
        self.next.lock().extend(troubles);
    }

    /// Removes all queued faults.
    pub(crate) fn clear(&self) {
        self.next.lock().clear();
    }

    /// Returns the number of calls that arrived.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Faulty {
    /// Applies the next fault to a call. If the fault is [`Trouble::None`], returns the result of
    /// `carry_out`.
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
                let result = carry_out.await;
                passed(&gate).await;
                result
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
        // Lazily, because the memory store executes a call at once.
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
