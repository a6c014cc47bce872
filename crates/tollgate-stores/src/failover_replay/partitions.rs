//! Failover replay over a store with partitions. The wrapper has the same partitions as its store.

use tollgate_core::{Cell, CellKey, Charge, Readings, StoreError, Subject, Timestamp};

use super::FailoverReplay;
use crate::atomic::{PartitionedCells, PartitionedEpochs, Partitions};

impl<H: PartitionedEpochs> FailoverReplay<H> {
    /// Replays the recorded state, as [`replay`](FailoverReplay::replay) does, once for each
    /// replication epoch in which charges are paused now. The epochs are replayed one after the
    /// other.
    ///
    /// # Errors
    /// The error of the first partition that did not accept the recorded state. The next call tries
    /// the replay again.
    pub async fn replay_partitions(&self, now: Timestamp) -> Result<(), StoreError> {
        let mut failed = Ok(());
        for partition in self.store.held() {
            if let Err(error) = self.replay_at(&self.store, partition, now).await {
                failed = failed.and(Err(error));
            }
        }
        failed
    }
}

impl<H: PartitionedEpochs> Partitions for FailoverReplay<H> {
    fn partition(&self, subject: &Subject) -> usize {
        self.store.partition(subject)
    }

    async fn apply_at(
        &self,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        self.apply_replayed(&self.store, partition, now, charges).await
    }
}

impl<H: PartitionedEpochs> PartitionedCells for FailoverReplay<H> {
    async fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        // If the replay fails, the read fails too, or the missing state is joined before the
        // partition's next charge.
        let _ = self.replay_at(&self.store, partition, now).await;
        self.store.cells_at(partition, now, cell_keys).await
    }

    fn join_at(
        &self,
        partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.store.join_at(partition, now, cells)
    }
}
