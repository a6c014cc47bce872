//! Export and import of the cells of a server.

use tollgate_core::{Cell, CellKey, CellTransfer, StoreError, Timestamp};

use super::Redis;
use crate::job::Job;

/// A transfer is split into commands of at most 64 cells. A command that joins cells gets no
/// further cell once its cells have more than 64 KiB. The commands are sent one after the other.
/// The first error ends the transfer.
impl CellTransfer for Redis {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let mut cells = Vec::with_capacity(cell_keys.len());
        for job in Job::of_cell_keys(&self.keys, now, cell_keys) {
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
