//! One Redis shard as a store.

use tollgate::model::{
    Cell, CellKey, CellTransfer, Charge, Readings, Store, StoreError, Timestamp,
};
use tollgate_stores::failover_replay::ReplayCounts;
use tollgate_stores::{Atomic, CallTimer, FailoverReplay};

use super::redis_servers::RedisServers;
use crate::status::ShardStatus;

/// The servers of a shard as one store, which makes calls over several slots all or nothing and
/// replays charges after each failover.
pub(crate) type ServersStore = Atomic<FailoverReplay<RedisServers>>;

/// One shard. The durations of the shard's calls are measured.
#[derive(Debug)]
pub(crate) struct ShardStore(CallTimer<ServersStore>);

impl ShardStore {
    pub(crate) const fn new(timed: CallTimer<ServersStore>) -> Self {
        Self(timed)
    }

    /// Returns the store without the measurement of durations.
    pub(crate) const fn untimed(&self) -> &ServersStore {
        self.0.store()
    }

    fn replay_store(&self) -> &FailoverReplay<RedisServers> {
        self.0.store().partitions()
    }

    /// Returns the servers of the shard.
    pub(crate) fn servers(&self) -> &RedisServers {
        self.replay_store().store()
    }

    /// Replays recorded charges that the shard may lack, unless the charges were already replayed.
    /// The replay is needed even if this node receives no more requests, because the other nodes
    /// then decide with these charges.
    pub(crate) async fn replay(&self, now: Timestamp) {
        // If the replay fails, the next check tries again, and charges wait until the replay
        // succeeds.
        let _ = self.replay_store().replay_partitions(now).await;
    }

    /// Returns the counts of replayed charges after failovers.
    pub(crate) fn replayed(&self) -> ReplayCounts {
        self.replay_store().replayed()
    }

    /// Returns the number of charges that could not be refunded when a call over several slots
    /// failed.
    pub(crate) fn unrefunded(&self) -> u64 {
        self.0.store().unrefunded()
    }

    /// Returns the current status of the shard under the name `name`.
    pub(crate) fn status(&self, name: &str) -> ShardStatus {
        self.servers().status(name, self.replayed(), self.0.durations())
    }
}

impl Store for ShardStore {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        // The future is boxed, because the nested futures of the store together exceed the
        // compiler's type depth.
        Box::pin(self.0.apply(now, charges)).await
    }
}

impl CellTransfer for ShardStore {
    async fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        self.0.cells(now, cell_keys).await
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        self.0.join(now, cells).await
    }
}
