//! Cells that are read out of the slots of a cluster, and taken in by them.

use std::sync::Arc;

use tokio::time::Instant;
use tollgate_core::{Cell, CellKey, StoreError, Timestamp};

use super::RedisCluster;
use super::redirects::RedirectFollower;
use crate::answer::Answer;
use crate::batcher::{BatcherError, Priority};
use crate::cluster::slot::Slot;
use crate::job::Job;

/// At the primaries, whoever reads are answered by, and ahead of what is held back: nothing is
/// decided by them. Many places are several jobs, one after the
/// other, each with the store's whole deadline; the first failure ends it.
impl RedisCluster {
    /// The cells that are kept for `places`, whose subjects all have this `partition`, as
    /// [`CellTransfer::cells`](tollgate_core::CellTransfer::cells) tells them.
    ///
    /// # Errors
    /// [`StoreError`] if the node that keeps the slot could not say. [`StoreError::Corrupt`] if the
    /// subjects have other partitions.
    pub async fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let slot = self.slot_of(partition, places.iter())?;
        let mut cells = Vec::with_capacity(places.len());
        for job in Job::of_places(&self.keys, now, places) {
            cells.extend(self.send(slot, job).await?.into_cells()?);
        }
        Ok(cells)
    }

    /// Joins `cells`, whose subjects all have this `partition`, with what is kept, as
    /// [`CellTransfer::join`](tollgate_core::CellTransfer::join) does.
    ///
    /// # Errors
    /// As of [`cells_at`](Self::cells_at).
    pub async fn join_at(
        &self,
        partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> Result<(), StoreError> {
        let slot = self.slot_of(partition, cells.iter().map(|(place, _)| place))?;
        for job in Job::joining(&self.keys, now, cells)? {
            self.send(slot, job).await?;
        }
        Ok(())
    }

    fn slot_of<'p>(
        &self,
        partition: usize,
        mut places: impl Iterator<Item = &'p CellKey<'p>>,
    ) -> Result<Slot, StoreError> {
        let slot = u16::try_from(partition).ok().and_then(Slot::new).ok_or(StoreError::Corrupt)?;
        let is_there = |place: &CellKey<'_>| self.partition(place.subject) == partition;
        if places.all(is_there) { Ok(slot) } else { Err(StoreError::Corrupt) }
    }

    async fn send(&self, slot: Slot, mut job: Job) -> Result<Answer, BatcherError> {
        let begun = Instant::now();
        let deadline = begun + self.deadline;
        let map = self.known.map(deadline).await.ok_or(BatcherError::Unavailable)?;
        let Some(owner) = map.owner(slot) else {
            self.known.request_refresh();
            return Err(BatcherError::Unavailable);
        };
        job.now = self.time(owner, job.now, begun);
        RedirectFollower::new(
            &self.known,
            &self.redirects,
            slot,
            Arc::clone(owner),
            Priority::Replay,
        )
        .follow(job.clone(), || job.clone(), deadline)
        .await
    }
}
