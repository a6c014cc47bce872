//! Reading states out and taking them in: what moves a subject from one store to another.

use tokio::time::{Instant, timeout_at};
use tollgate_core::decide::join;
use tollgate_core::store::{Cells, Place};
use tollgate_core::{Cell, Cost, Found, StoreError, Timestamp, assess};

use crate::error::MemcachedError;
use crate::layout::View;
use crate::steps::Seen;
use crate::store::Memcached;

impl Cells for Memcached {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let jobs: Vec<_> = places.iter().map(|place| self.look_at(place)).collect();
        let seen = self.inner.steps.read(&jobs, Instant::now() + self.deadline).await?;
        let counting = |(seen, place): (Seen, &Place<'_>)| {
            let counts = |cell: &Cell| {
                assess(Some(cell), place.limit, Cost::PEEK, now).found == Found::State
            };
            seen.view.cell.filter(counts)
        };
        Ok(seen.into_iter().zip(places).map(counting).collect())
    }

    /// One compare-and-swap a place, one after the other.
    async fn join(&self, now: Timestamp, cells: &[(Place<'_>, Cell)]) -> Result<(), StoreError> {
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
        place: &Place<'_>,
        cell: &Cell,
    ) -> Result<(), MemcachedError> {
        let job = self.look_at(place);
        let deadline = Instant::now() + self.deadline;
        let turn = self.inner.turns.at(std::iter::once(job.names.first()));
        let _turn = timeout_at(deadline, turn).await.map_err(|_| MemcachedError::Overloaded)?;
        let steps = &self.inner.steps;
        let seen = steps.read_one(&job, deadline).await?;
        let step =
            |view: &View| Some(((), join(view.cell.clone(), cell.clone(), place.limit, now)));
        // The step always has an answer.
        let _ = steps.change(&job, seen, now, deadline, step).await?;
        Ok(())
    }
}
