//! Homes that are repaired are homes again.

use tollgate_core::{Cell, Charge, Place, Readings, StoreError, Subject, Timestamp};

use super::Repair;
use crate::store::atomic::{Homes, HomesOfCells, HomesOfHistories};

impl<H: HomesOfHistories> Repair<H> {
    /// As [`settle`](Repair::settle), of every history that is held now, one after the other.
    ///
    /// # Errors
    /// Why the first home that did not take what is remembered did not. It will be tried again.
    pub async fn settle_homes(&self, now: Timestamp) -> Result<(), StoreError> {
        let mut failed = Ok(());
        for home in self.store.held() {
            if let Err(error) = self.settle_at(&self.store, home, now).await {
                failed = failed.and(Err(error));
            }
        }
        failed
    }
}

impl<H: HomesOfHistories> Homes for Repair<H> {
    fn home(&self, subject: &Subject) -> usize {
        self.store.home(subject)
    }

    async fn apply_at(
        &self,
        home: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        self.carry_out_at(&self.store, home, now, charges).await
    }
}

impl<H: HomesOfHistories> HomesOfCells for Repair<H> {
    async fn cells_at(
        &self,
        home: usize,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        // Where it fails, the home says so, or what it lacks is joined before its next charge.
        let _ = self.settle_at(&self.store, home, now).await;
        self.store.cells_at(home, now, places).await
    }

    fn join_at(
        &self,
        home: usize,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store.join_at(home, now, cells)
    }
}
