//! Export and import of cells by the slots of a cluster.

use std::sync::Arc;

use tokio::time::Instant;
use tollgate_core::{Cell, CellKey, StoreError, Timestamp};

use super::RedisCluster;
use super::redirects::RedirectFollower;
use crate::answer::Answer;
use crate::batcher::{BatcherError, Priority};
use crate::job::Job;
use crate::slot::Slot;

/// Transfers read and write cells at the primaries, even if replicas answer read-only calls. A
/// transfer decides nothing, so it also runs while charges are held back after a failover. A
/// transfer of many cells is split into several jobs. The jobs run one after the other, and each
/// job has the store's whole deadline. The first error ends the transfer.
impl RedisCluster {
    /// Returns the cells that are stored for the limits and subjects in `cell_keys`, as
    /// [`CellTransfer::cells`](tollgate_core::CellTransfer::cells) does. All subjects must belong
    /// to `partition`.
    ///
    /// # Errors
    /// [`StoreError`] if the node that owns the slot did not answer. [`StoreError::Corrupt`] if a
    /// subject belongs to another partition.
    pub async fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let slot = self.slot_of(partition, cell_keys.iter())?;
        let mut cells = Vec::with_capacity(cell_keys.len());
        for job in Job::of_cell_keys(&self.keys, now, cell_keys) {
            cells.extend(self.send(slot, job).await?.into_cells()?);
        }
        Ok(cells)
    }

    /// Joins `cells` with the stored cells, as
    /// [`CellTransfer::join`](tollgate_core::CellTransfer::join) does. The subjects of all cells
    /// must belong to `partition`.
    ///
    /// # Errors
    /// The same as [`cells_at`](Self::cells_at).
    pub async fn join_at(
        &self,
        partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> Result<(), StoreError> {
        let slot = self.slot_of(partition, cells.iter().map(|(cell_key, _)| cell_key))?;
        for job in Job::joining(&self.keys, now, cells)? {
            self.send(slot, job).await?;
        }
        Ok(())
    }

    fn slot_of<'p>(
        &self,
        partition: usize,
        mut cell_keys: impl Iterator<Item = &'p CellKey<'p>>,
    ) -> Result<Slot, StoreError> {
        let slot = u16::try_from(partition).ok().and_then(Slot::new).ok_or(StoreError::Corrupt)?;
        let is_there = |cell_key: &CellKey<'_>| self.partition(cell_key.subject) == partition;
        if cell_keys.all(is_there) { Ok(slot) } else { Err(StoreError::Corrupt) }
    }

    async fn send(&self, slot: Slot, mut job: Job) -> Result<Answer, BatcherError> {
        let started = Instant::now();
        let deadline = started + self.deadline;
        let map = self.known.map(deadline).await.ok_or(BatcherError::Unavailable)?;
        let Some(owner) = map.owner(slot) else {
            self.known.request_refresh();
            return Err(BatcherError::Unavailable);
        };
        job.set_time(self.time.of_job(
            owner.primary().link().clock(),
            job.now,
            started,
            job.skews(),
        ));
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
