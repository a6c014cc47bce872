//! A store that keeps the counters of limits in shards of Redis or Valkey.

use std::sync::Arc;

use tollgate::Clock;
use tollgate::model::{Policy, Timestamp};
use tollgate_policy::{DecisionClock, RedisSettings};
use tollgate_redis::ClockOffset;
use tollgate_stores::Rebalance;

use super::local_charging::LocalCharging;
use super::server_store::ServerStore;
use super::store_clock::{OffsetSource, StoreClock, Tolerance};
use crate::settings::{Refunds, deny_cache_ttl};
use crate::shards::{Heartbeats, Shard, ShardMap, ShardStore, Watch};
use crate::status::{Counts, MapStatus, ShardStatus};

/// The shards as one store, which can move subjects to another shard map.
type Servers = Rebalance<ShardStore>;

/// A store that keeps the counters of limits in shards of Redis or Valkey.
///
/// The deny cache of this node answers calls for which it has a valid refusal. Calls on leased
/// limits are decided from a quota lease of this node if the lease has enough units. All other
/// calls go to the shard that owns the subject, or to several shards if necessary. If there is no
/// answer within the deadline, this node's share of the limit decides. The documentation of each
/// layer describes its weaker guarantees and their bounds:
/// [`DenyCache`](tollgate_stores::DenyCache), [`Fallback`](tollgate_stores::Fallback),
/// [`LocalShare`](tollgate_stores::LocalShare), [`Deadline`](tollgate_stores::Deadline),
/// [`QuotaLease`](tollgate_stores::QuotaLease), [`Atomic`](tollgate_stores::Atomic),
/// [`Sharded`](tollgate_stores::Sharded), [`FailoverReplay`](tollgate_stores::FailoverReplay),
/// [`RedisShard`](tollgate_redis::RedisShard), and, while subjects move from one shard map to
/// another, [`Rebalance`].
#[derive(Debug)]
pub struct RedisBackend {
    store: ServerStore<Servers>,
    shards: Arc<ShardMap>,
    clock: DecisionClock,
    watch: Watch,
    /// The heartbeats of this node. `None` for an observer.
    heartbeats: Option<Heartbeats>,
    _local_charging: LocalCharging,
}

impl RedisBackend {
    pub(crate) fn new(
        store: ServerStore<Servers>,
        shards: Arc<ShardMap>,
        watch: Watch,
        heartbeats: Option<Heartbeats>,
        clock: DecisionClock,
    ) -> Self {
        let decider = Arc::clone(&store.handles().decider);
        let local_charging = LocalCharging::start(decider, watch.deciding());
        Self { store, shards, clock, watch, heartbeats, _local_charging: local_charging }
    }

    /// Returns the status of the shards, in the order of the settings.
    #[must_use]
    pub fn status(&self) -> Vec<ShardStatus> {
        let tolerance = self.tolerance();
        let status = |shard: &Shard| {
            let status = shard.store.status(&shard.name);
            let clock_overridden =
                status.clock_offsets().any(|offset| tolerance.is_exceeded(&offset));
            ShardStatus { clock_overridden, ..status }
        };
        self.shards.shards().map(status).collect()
    }

    /// Returns this node's shard map, the shard maps of other nodes, and the progress of a
    /// rebalance. An [observer](tollgate_redis::ClientRole::ReadOnly) does not query the shard maps
    /// of other nodes.
    #[must_use]
    pub fn map_status(&self) -> MapStatus {
        let nothing_heard =
            || MapStatus { version: self.shards.version(), nodes: None, moving: None };
        self.heartbeats.as_ref().map_or_else(nothing_heard, Heartbeats::status)
    }

    /// Returns the counts of decisions without a shard and of failures, since the store was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.store.counts(self.shards.unrefunded(), self.shards.replayed())
    }

    pub(crate) async fn started(&self) {
        self.watch.started().await;
    }

    /// Applies `policy`. `refunds` determines from which sources refunds can come. If a refund that
    /// the policy permits can end a refusal, the deny cache keeps refusals only briefly.
    pub(crate) fn follow(&self, redis: &RedisSettings, policy: &Policy, refunds: Refunds) {
        self.store.handles().refusals.set_ttl(deny_cache_ttl(redis, policy, refunds));
        self.watch.follow(policy);
        if let Some(heartbeats) = &self.heartbeats {
            heartbeats.follow(policy);
        }
    }

    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        self.shards.shards().for_each(|shard| shard.store.servers().check_clock());
        let shards = Arc::clone(&self.shards);
        let clock: Arc<dyn Clock> = Arc::new(StoreClock::new(clock, shards, self.tolerance()));
        self.watch.set_clock(Arc::clone(&clock));
        clock
    }

    /// Checks that this node's clock differs from every shard's clock by at most the difference
    /// that the limits permit. If a difference is larger, the node decides by the shard's clock and
    /// is not ready.
    ///
    /// # Errors
    /// The shard and the difference of its clock, with advice to the operator.
    pub(crate) fn check_clock(&self) -> Result<(), String> {
        if self.clock == DecisionClock::Store {
            return Ok(());
        }
        let allowed = self.watch.skew_max();
        let shards = self.shards.shards().map(|shard| shard.store.status(&shard.name));
        let wrong = shards.flat_map(|shard| shard.primaries()).find(|it| it.skew() > allowed);
        wrong.map_or(Ok(()), |shard| {
            Err(format!(
                "the clocks of this node and of shard {} are {:?} apart, and skew_max is \
                 {allowed:?}: synchronize them; until then the shard's clock decides",
                shard.name,
                shard.skew()
            ))
        })
    }

    fn tolerance(&self) -> Tolerance {
        match self.clock {
            DecisionClock::Application => Tolerance::half_of(self.watch.shared_skew_max()),
            DecisionClock::Store => Tolerance::ZERO,
        }
    }

    /// Refunds the unused units of this node's quota leases. Called before the process ends.
    pub(crate) async fn refund_leases(&self, now: Timestamp) {
        self.store.refund_leases(now).await;
    }

    pub(crate) const fn shards(&self) -> &Arc<ShardMap> {
        &self.shards
    }

    pub(crate) const fn store(&self) -> &ServerStore<Servers> {
        &self.store
    }
}

impl OffsetSource for ShardMap {
    fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        self.clock_offset(now)
    }
}
