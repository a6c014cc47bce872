//! Exports and imports of cells, for moving a subject from one store to another.

use tokio::time::{Instant, timeout_at};
use tollgate_core::decide::join;
use tollgate_core::store::{CellKey, CellTransfer};
use tollgate_core::{Cell, Cost, StoreError, StoredState, Timestamp, assess};

use crate::error::MemcachedError;
use crate::layout::View;
use crate::steps::ReadState;
use crate::store::Memcached;

impl CellTransfer for Memcached {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        if cell_keys.is_empty() {
            return Ok(Vec::new());
        }
        let deadline = Instant::now() + self.deadline;
        let now = self.time(now, cell_keys.iter().map(|cell_key| cell_key.limit), deadline).await;
        let jobs: Vec<_> = cell_keys.iter().map(|cell_key| self.peek_job(cell_key)).collect();
        let seen = self.inner.steps.read(&jobs, deadline).await?;
        let counting = |(seen, cell_key): (ReadState, &CellKey<'_>)| {
            let counts = |cell: &Cell| {
                assess(Some(cell), cell_key.limit, Cost::PEEK, now).found == StoredState::Present
            };
            seen.view.cell.filter(counts)
        };
        Ok(seen.into_iter().zip(cell_keys).map(counting).collect())
    }

    /// Joins each cell with the stored state of its limit and subject. The states are changed one
    /// after the other, each by compare-and-swap.
    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        let limits = cells.iter().map(|(cell_key, _)| cell_key.limit);
        let now = self.time(now, limits, Instant::now() + self.deadline).await;
        for (cell_key, cell) in cells {
            self.join_one(now, cell_key, cell).await?;
        }
        Ok(())
    }
}

impl Memcached {
    async fn join_one(
        &self,
        now: Timestamp,
        cell_key: &CellKey<'_>,
        cell: &Cell,
    ) -> Result<(), MemcachedError> {
        let job = self.peek_job(cell_key);
        let deadline = Instant::now() + self.deadline;
        let turn = self.inner.locks.at(std::iter::once(job.names.first()));
        let _turn = timeout_at(deadline, turn).await.map_err(|_| MemcachedError::Overloaded)?;
        let steps = &self.inner.steps;
        let seen = steps.read_one(&job, deadline).await?;
        let step =
            |view: &View| Some(((), join(view.cell.clone(), cell.clone(), cell_key.limit, now)));
        // The closure `step` never returns `None`, so the inner result is always `Ok`.
        let _ = steps.change(&job, seen, now, deadline, step).await?;
        Ok(())
    }
}
