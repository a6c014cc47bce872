//! A store of one history, as the one home that it is.

use tollgate_core::{
    Cell, Charge, Histories, Millis, Place, Readings, StoreError, Subject, Timestamp,
};

use crate::store::atomic::{Homes, HomesOfCells, HomesOfHistories};

/// The store, at home 0.
pub(super) struct Whole<'s, S>(pub(super) &'s S);

impl<S: Histories> Homes for Whole<'_, S> {
    fn home(&self, _subject: &Subject) -> usize {
        0
    }

    fn apply_at(
        &self,
        _home: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send {
        self.0.apply(now, charges)
    }
}

impl<S: Histories> HomesOfCells for Whole<'_, S> {
    fn cells_at(
        &self,
        _home: usize,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.0.cells(now, places)
    }

    fn join_at(
        &self,
        _home: usize,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.0.join(now, cells)
    }
}

impl<S: Histories> HomesOfHistories for Whole<'_, S> {
    fn history_at(&self, _home: usize) -> u64 {
        self.0.history()
    }

    fn holds_at(&self, _home: usize) -> bool {
        self.0.holds()
    }

    fn outage_at(&self, _home: usize) -> Millis {
        self.0.outage()
    }

    fn held(&self) -> Vec<usize> {
        if self.0.holds() { vec![0] } else { Vec::new() }
    }

    fn release(&self, history: u64) {
        self.0.release(history);
    }
}
