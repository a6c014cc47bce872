//! A Redis Cluster as a store.

use tollgate::model::{Cell, CellKey, Charge, Millis, Readings, StoreError, Subject, Timestamp};
use tollgate_redis::RedisCluster;
use tollgate_stores::atomic::{PartitionedCells, PartitionedEpochs};
use tollgate_stores::{Atomic, FailoverReplay, Partitions};

/// A Redis Cluster as a store. A call with all keys in one slot is one command, exact, in one round
/// trip. [`Atomic`] makes a call over several slots all or nothing; its documentation describes the
/// cost. After a failover, [`FailoverReplay`] replays the charges that a primary's slots lack, and
/// its documentation gives the bound of what is still lost.
pub type ClusterStore = Atomic<FailoverReplay<Slots>>;

/// The slots of a cluster as partitions.
#[derive(Debug)]
pub struct Slots(RedisCluster);

impl Slots {
    /// Returns a store with the slots of `cluster` as partitions. Losses of failovers are repaired
    /// if the cluster was opened with
    /// [`AfterFailover::Pause`](tollgate_redis::AfterFailover::Pause).
    #[must_use]
    pub fn store(cluster: RedisCluster) -> ClusterStore {
        Atomic::new(FailoverReplay::new(Self(cluster)))
    }

    /// Returns the cluster.
    #[must_use]
    pub const fn cluster(&self) -> &RedisCluster {
        &self.0
    }
}

impl Partitions for Slots {
    fn partition(&self, subject: &Subject) -> usize {
        self.0.partition(subject)
    }

    async fn apply_at(
        &self,
        partition: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        self.0.apply_at(partition, now, charges).await
    }
}

impl PartitionedCells for Slots {
    async fn cells_at(
        &self,
        partition: usize,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.0.cells_at(partition, now, places).await
    }

    async fn join_at(
        &self,
        partition: usize,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> Result<(), StoreError> {
        self.0.join_at(partition, now, cells).await
    }
}

impl PartitionedEpochs for Slots {
    fn epoch_at(&self, partition: usize) -> u64 {
        self.0.epoch_at(partition)
    }

    fn is_paused_at(&self, partition: usize) -> bool {
        self.0.is_paused_at(partition)
    }

    fn outage_at(&self, partition: usize) -> Millis {
        self.0.outage_at(partition)
    }

    fn held(&self) -> Vec<usize> {
        self.0.held()
    }

    fn release(&self, history: u64) {
        self.0.release(history);
    }
}
