//! Cells that are read out of a server, and taken in by it.

use tollgate_core::{Cell, CellKey, CellTransfer, StoreError, Timestamp};

use super::Redis;
use crate::job::Job;

/// Each 64 places are a command of their own, and so are fewer that have more than 64 KiB of cells
/// to join; one command after the other. The first failure ends it.
impl CellTransfer for Redis {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let mut cells = Vec::with_capacity(places.len());
        for job in Job::of_places(&self.keys, now, places) {
            cells.extend(self.run_alone(job).await?.into_cells()?);
        }
        Ok(cells)
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        for job in Job::joining(&self.keys, now, cells)? {
            self.run_alone(job).await?;
        }
        Ok(())
    }
}
