//! Cells that are read out of a shard, and taken in by it.

use tokio::time::Instant;
use tollgate_core::{Cell, CellKey, CellTransfer, StoreError, Timestamp};

use super::RedisShard;
use crate::answer::Answer;
use crate::batcher::{BatcherError, Priority, Route};
use crate::job::Job;

/// Through the batcher to the primary, whoever reads are answered by: what moves is what is in force.
///
/// Nothing is decided by them, so they go ahead of what is held back.
///
/// Each 64 places are a job of their own, and so are fewer that have more than 64 KiB of cells to
/// join; one job after the other, each with the store's whole deadline. The first failure ends it.
impl CellTransfer for RedisShard {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let now = self.moment(now, Instant::now());
        let mut cells = Vec::with_capacity(places.len());
        for job in Job::of_places(&self.keys, now, places) {
            cells.extend(self.carry(job).await?.into_cells()?);
        }
        Ok(cells)
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        let now = self.moment(now, Instant::now());
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
