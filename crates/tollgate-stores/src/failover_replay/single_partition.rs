//! Converts a store with one replication epoch to a single partition.

use tollgate_core::{
    Cell, CellKey, Charge, Millis, Readings, ReplicationEpochs, StoreError, Subject, Timestamp,
};

use crate::atomic::{PartitionedCells, PartitionedEpochs, Partitions};

/// A store that is used as the single partition 0.
pub(super) struct SinglePartition<'s, S>(pub(super) &'s S);

impl<S: ReplicationEpochs> Partitions for SinglePartition<'_, S> {
    fn partition(&self, _subject: &Subject) -> usize {
        0
    }

    fn apply_at(
        &self,
        _partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send {
        self.0.apply(now, charges)
    }
}

impl<S: ReplicationEpochs> PartitionedCells for SinglePartition<'_, S> {
    fn cells_at(
        &self,
        _partition: usize,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        self.0.cells(now, cell_keys)
    }

    fn join_at(
        &self,
        _partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.0.join(now, cells)
    }
}

impl<S: ReplicationEpochs> PartitionedEpochs for SinglePartition<'_, S> {
    fn epoch_at(&self, _partition: usize) -> u64 {
        self.0.epoch()
    }

    fn is_paused_at(&self, _partition: usize) -> bool {
        self.0.holds()
    }

    fn outage_at(&self, _partition: usize) -> Millis {
        self.0.outage()
    }

    fn held(&self) -> Vec<usize> {
        if self.0.holds() { vec![0] } else { Vec::new() }
    }

    fn release(&self, epoch: u64) {
        self.0.release(epoch);
    }
}
