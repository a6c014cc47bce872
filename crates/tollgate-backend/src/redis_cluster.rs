//! A Redis Cluster as a store.

use tollgate::core::{Cell, Charge, Millis, Place, Readings, StoreError, Subject, Timestamp};
use tollgate::store::atomic::{HomesOfCells, HomesOfHistories};
use tollgate::store::{Atomic, Homes, Repair};
use tollgate_redis::RedisCluster;

/// A Redis Cluster as a store: a call whose keys live in one slot is one command, exact, in one
/// round trip; [`Atomic`] makes one over several slots all or nothing, and says what that costs.
/// After a failover, [`Repair`] tells a primary what it lacks of its slots, and says how much is
/// lost all the same.
pub type ClusterStore = Atomic<Repair<Slots>>;

/// The slots of a cluster, as the homes of what is charged.
#[derive(Debug)]
pub struct Slots(RedisCluster);

impl Slots {
    /// The store whose homes are the slots of `cluster`. What failovers lose is repaired if the
    /// cluster was opened with [`AfterFailover::Hold`](tollgate_redis::AfterFailover::Hold).
    #[must_use]
    pub fn store(cluster: RedisCluster) -> ClusterStore {
        Atomic::new(Repair::new(Self(cluster)))
    }

    /// The cluster.
    #[must_use]
    pub const fn cluster(&self) -> &RedisCluster {
        &self.0
    }
}

impl Homes for Slots {
    fn home(&self, subject: &Subject) -> usize {
        self.0.home(subject)
    }

    async fn apply_at(
        &self,
        home: usize,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Readings, StoreError> {
        self.0.apply_at(home, now, charges).await
    }
}

impl HomesOfCells for Slots {
    async fn cells_at(
        &self,
        home: usize,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.0.cells_at(home, now, places).await
    }

    async fn join_at(
        &self,
        home: usize,
        now: Timestamp,
        cells: &[(Place<'_>, Cell)],
    ) -> Result<(), StoreError> {
        self.0.join_at(home, now, cells).await
    }
}

impl HomesOfHistories for Slots {
    fn history_at(&self, home: usize) -> u64 {
        self.0.history_at(home)
    }

    fn holds_at(&self, home: usize) -> bool {
        self.0.holds_at(home)
    }

    fn outage_at(&self, home: usize) -> Millis {
        self.0.outage_at(home)
    }

    fn held(&self) -> Vec<usize> {
        self.0.held()
    }

    fn release(&self, history: u64) {
        self.0.release(history);
    }
}
