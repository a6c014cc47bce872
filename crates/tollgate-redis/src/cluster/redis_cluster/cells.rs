//! Cells that are read out of the slots of a cluster, and taken in by them.

use std::sync::Arc;

use tokio::time::Instant;
use tollgate_core::{Cell, Place, StoreError, Timestamp};

use super::RedisCluster;
use super::way::Way;
use crate::answer::Answer;
use crate::cluster::slot::Slot;
use crate::job::Job;
use crate::lane::{LaneError, Rank};

/// At the primaries, whoever reads are answered by, and ahead of what is held back: nothing is
/// decided by them. Many places are several jobs, one after the
/// other, each with the store's whole deadline; the first failure ends it.
impl RedisCluster {
    /// The cells that are kept for `places`, whose subjects all have this `home`, as
    /// [`Cells::cells`](tollgate_core::Cells::cells) tells them.
    ///
    /// # Errors
    /// [`StoreError`] if the node that keeps the slot could not say. [`StoreError::Corrupt`] if the
    /// subjects have other homes.
    pub async fn cells_at(
        &self,
        home: usize,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let slot = self.slot_of(home, places.iter())?;
        let mut cells = Vec::with_capacity(places.len());
        for job in Job::of_places(&self.keys, now, places) {
            cells.extend(self.send(slot, job).await?.into_cells()?);
        }
        Ok(cells)
    }

    /// Joins `cells`, whose subjects all have this `home`, with what is kept, as
    /// [`Cells::join`](tollgate_core::Cells::join) does.
    ///
    /// # Errors
    /// As of [`cells_at`](Self::cells_at).
    pub async fn join_at(
        &self,
        home: usize,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> Result<(), StoreError> {
        let slot = self.slot_of(home, cells.iter().map(|(place, _)| place))?;
        for job in Job::joining(&self.keys, now, cells)? {
            self.send(slot, job).await?;
        }
        Ok(())
    }

    fn slot_of<'p>(
        &self,
        home: usize,
        mut places: impl Iterator<Item = &'p Place<'p>>,
    ) -> Result<Slot, StoreError> {
        let slot = u16::try_from(home).ok().and_then(Slot::new).ok_or(StoreError::Corrupt)?;
        let is_there = |place: &Place<'_>| self.home(place.subject) == home;
        if places.all(is_there) { Ok(slot) } else { Err(StoreError::Corrupt) }
    }

    async fn send(&self, slot: Slot, mut job: Job) -> Result<Answer, LaneError> {
        let begun = Instant::now();
        let deadline = begun + self.deadline;
        let map = self.known.map(deadline).await.ok_or(LaneError::Unavailable)?;
        let Some(owner) = map.owner(slot) else {
            self.known.doubt();
            return Err(LaneError::Unavailable);
        };
        job.now = self.time(owner, job.now, begun);
        Way::new(&self.known, &self.redirects, slot, Arc::clone(owner), Rank::Ahead)
            .follow(job.clone(), || job.clone(), deadline)
            .await
    }
}
