//! The shard map of a policy file. During a rebalance, two maps assign subjects to shards: the
//! previous map and the new map.

use std::sync::Arc;

use tollgate::model::{Subject, Timestamp};
use tollgate_redis::ClockOffset;
use tollgate_stores::Rebalance;
use tollgate_stores::failover_replay::ReplayCounts;
use tollgate_stores::rebalance::Phase;
use tollgate_stores::sharded::{MapVersion, Routing};

use super::redis_servers::RedisServers;
use super::shard_store::ShardStore;

/// A shard. If a shard is in both shard maps, both maps share one store.
pub(crate) type Shard = tollgate_stores::Shard<Arc<ShardStore>>;

/// The shards, and the store that combines them.
#[derive(Debug)]
pub(crate) struct ShardMap {
    store: Arc<Rebalance<ShardStore>>,
    /// The shards that are only in the previous map.
    leaving: Vec<Shard>,
}

impl ShardMap {
    /// Creates the map of `store`. `leaving` are the shards that are only in the previous map.
    pub(crate) fn new(store: Rebalance<ShardStore>, leaving: Vec<Shard>) -> Self {
        Self { store: Arc::new(store), leaving }
    }

    /// Returns the shards as one store, with all-or-nothing calls.
    pub(crate) const fn store(&self) -> &Arc<Rebalance<ShardStore>> {
        &self.store
    }

    /// Returns the shards of the settings in their order, and then the shards that are only in the
    /// previous map.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.store.after().partitions().shards().iter().chain(&self.leaving)
    }

    /// Returns the shards of the previous map. If there is no previous map, returns the shards of
    /// the current map.
    pub(crate) fn shards_before(&self) -> &[Shard] {
        self.store.before().partitions().shards()
    }

    /// Returns the servers that own `subject` in the current map. If a rebalance moves `subject` at
    /// this time, returns the servers that own it in the previous map, and then those in the new
    /// map.
    pub(crate) fn owners_of(&self, subject: &Subject) -> impl Iterator<Item = &RedisServers> {
        let is_moving = self.store.phase() != Phase::Done && self.store.moves(subject);
        let before = is_moving.then(|| self.store.before());
        let maps = before.into_iter().chain([self.store.after()]);
        maps.map(|map| map.partitions().shard_for(subject).store.servers())
    }

    /// Returns the rebalance, or `None` if no rebalance is in progress.
    pub(crate) fn rebalance(&self) -> Option<&Rebalance<ShardStore>> {
        Some(&*self.store).filter(|store| store.has_previous())
    }

    /// Returns the version of the current map or, during a rebalance, of the new map.
    pub(crate) fn version(&self) -> MapVersion {
        self.store.after().partitions().version()
    }

    /// Returns how far the clock of a shard is ahead of a clock that shows `now`. The shard is the
    /// first shard with a known time. Returns `None` if no shard has such a time.
    pub(crate) fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        self.shards().find_map(|shard| shard.store.servers().clock_offset(now))
    }

    /// Returns the number of charges of failed calls that could not be refunded.
    pub(crate) fn unrefunded(&self) -> u64 {
        let of_shards = self.shards().map(|shard| shard.store.unrefunded()).sum::<u64>();
        self.store.unrefunded() + of_shards
    }

    /// Returns the counts of replayed charges after failovers.
    pub(crate) fn replayed(&self) -> ReplayCounts {
        self.shards().map(|shard| shard.store.replayed()).sum()
    }
}

/// Returns the routing by the pair called `route_by` of a subject. Without `route_by`, returns the
/// routing by the first pair.
pub(crate) fn routing(route_by: Option<&str>) -> Routing {
    route_by.map_or(Routing::First, |name| Routing::Dimension(name.into()))
}
