//! A store whose calls are timed.

use tollgate_core::{Cell, Cells, Charge, Place, Readings, Store, StoreError, Timestamp};

use crate::observe::{Histogram, Observed};

/// Counts how long each call of a store took.
///
/// # What it keeps
/// Every answer, unchanged.
///
/// # What it weakens
/// Nothing. A call costs two readings of a clock and two relaxed additions. A call that is given
/// up before its answer counts with the time until then: left out, a store that stopped answering
/// would look as fast as before. Cells that are read or joined, which no client waits for, are not
/// counted.
#[derive(Debug)]
pub struct Timed<S> {
    store: S,
    took: Histogram,
}

impl<S> Timed<S> {
    /// `store`, of which nothing was asked yet.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store, took: Histogram::default() }
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// How long its calls took.
    #[must_use]
    pub fn took(&self) -> Observed {
        self.took.read()
    }
}

impl<S: Store> Store for Timed<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let _measuring = self.took.measure();
        self.store.apply(now, charges).await
    }
}

impl<S: Cells> Cells for Timed<S> {
    fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.store.cells(now, places)
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store.join(now, cells)
    }
}
