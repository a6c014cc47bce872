//! A store whose calls are timed.

use tollgate_core::{Cell, CellKey, CellTransfer, Charge, Readings, Store, StoreError, Timestamp};

use crate::observe::{Histogram, Observed};

/// Counts how long each call of a store took.
///
/// # What it keeps
/// Every answer, unchanged.
///
/// # What it weakens
/// Nothing. A call costs two readings of a clock and two relaxed additions. A call that is given
/// up before its answer counts with the time until then: left out, a store that stopped answering
/// would look as fast as before. CellTransfer that are read or joined, which no client waits for, are not
/// counted.
#[derive(Debug)]
pub struct CallTimer<S> {
    store: S,
    durations: Histogram,
}

impl<S> CallTimer<S> {
    /// `store`, of which nothing was asked yet.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store, durations: Histogram::default() }
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// How long its calls took.
    #[must_use]
    pub fn durations(&self) -> Observed {
        self.durations.read()
    }
}

impl<S: Store> Store for CallTimer<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let _measuring = self.durations.measure();
        self.store.apply(now, charges).await
    }
}

impl<S: CellTransfer> CellTransfer for CallTimer<S> {
    fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.store.cells(now, places)
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store.join(now, cells)
    }
}
