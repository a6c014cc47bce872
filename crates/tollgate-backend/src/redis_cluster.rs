//! A Redis Cluster as a store.

use tollgate::core::{Cell, Charge, Place, Readings, StoreError, Subject, Timestamp};
use tollgate::store::atomic::HomesOfCells;
use tollgate::store::{Atomic, Homes};
use tollgate_redis::RedisCluster;

/// A Redis Cluster as a store: a call whose keys live in one slot is one command, exact, in one
/// round trip; [`Atomic`] makes one over several slots all or nothing, and says what that costs.
pub type ClusterStore = Atomic<Slots>;

/// The slots of a cluster, as the homes of what is charged.
#[derive(Debug)]
pub struct Slots(RedisCluster);

impl Slots {
    /// The store whose homes are the slots of `cluster`.
    #[must_use]
    pub fn store(cluster: RedisCluster) -> ClusterStore {
        Atomic::new(Self(cluster))
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
