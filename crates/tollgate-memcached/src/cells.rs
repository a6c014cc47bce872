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
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let deadline = Instant::now() + self.deadline;
        let now = self.time(now, places.iter().map(|place| place.limit), deadline).await;
        let jobs: Vec<_> = places.iter().map(|place| self.look_at(place)).collect();
        let seen = self.inner.steps.read(&jobs, deadline).await?;
        let counting = |(seen, place): (ReadState, &CellKey<'_>)| {
            let counts = |cell: &Cell| {
                assess(Some(cell), place.limit, Cost::PEEK, now).found == StoredState::Present
            };
            seen.view.cell.filter(counts)
        };
        Ok(seen.into_iter().zip(places).map(counting).collect())
    }

    /// Joins each cell with the stored state of its limit and subject. The states are changed one
    /// after the other, each by compare-and-swap.
    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        let limits = cells.iter().map(|(place, _)| place.limit);
        let now = self.time(now, limits, Instant::now() + self.deadline).await;
        for (place, cell) in cells {
            self.join_one(now, place, cell).await?;
        }
        Ok(())
    }
}

impl Memcached {
    async fn join_one(
        &self,
        now: Timestamp,
        place: &CellKey<'_>,
        cell: &Cell,
    ) -> Result<(), MemcachedError> {
        let job = self.look_at(place);
        let deadline = Instant::now() + self.deadline;
        let turn = self.inner.locks.at(std::iter::once(job.names.first()));
        let _turn = timeout_at(deadline, turn).await.map_err(|_| MemcachedError::Overloaded)?;
        let steps = &self.inner.steps;
        let seen = steps.read_one(&job, deadline).await?;
        let step =
            |view: &View| Some(((), join(view.cell.clone(), cell.clone(), place.limit, now)));
        // The closure `step` never returns `None`, so the inner result is always `Ok`.
        let _ = steps.change(&job, seen, now, deadline, step).await?;
        Ok(())
    }
}
