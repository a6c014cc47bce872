//! Export and import of the cells of a shard.

use tokio::time::Instant;
use tollgate_core::{Cell, CellKey, CellTransfer, StoreError, Timestamp};

use super::RedisShard;
use crate::answer::Answer;
use crate::batcher::{BatcherError, Priority, Route};
use crate::job::Job;

/// Transfers cells through the batcher to the primary, even if replicas answer read-only calls,
/// because a transfer needs the current state.
///
/// A transfer decides nothing, so a transfer also runs while charges are held back after a
/// failover.
///
/// A transfer is split into jobs of at most 64 cells. A job that joins cells gets no further cell
/// once its cells have more than 64 KiB. The jobs run one after the other, and each job has the
/// store's whole deadline. The first error ends the transfer.
impl CellTransfer for RedisShard {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let now = self.time(now, Instant::now(), cell_keys.iter().map(|cell_key| cell_key.limit));
        let mut cells = Vec::with_capacity(cell_keys.len());
        for job in Job::of_cell_keys(&self.keys, now, cell_keys) {
            cells.extend(self.carry(job).await?.into_cells()?);
        }
        Ok(cells)
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        let limits = cells.iter().map(|(cell_key, _)| cell_key.limit);
        let now = self.time(now, Instant::now(), limits);
        for job in Job::joining(&self.keys, now, cells)? {
            self.carry(job).await?;
        }
        Ok(())
    }
}

impl RedisShard {
    async fn carry(&self, job: Job) -> Result<Answer, BatcherError> {
        let deadline = Instant::now() + self.deadline;
        self.shard.primary().submit_by(Route::Any, Priority::Replay, job, deadline).await
    }
}
