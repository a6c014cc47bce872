//! Shards of Redis or Valkey as one store, with all that an outage asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tollgate::core::{
    Charge, DecisionSource, Policy, Reading, Readings, Store, StoreError, StoredState, Timestamp,
};
use tollgate::store::deadline::TIMER_GRAIN;
use tollgate::store::memory::Bounds;
use tollgate::store::quota_lease::{LeaseConfig, Sweeper};
use tollgate::store::{
    Deadline, DenyCache, Fallback, LocalShare, Memory, QuotaLease, QuotaRescale,
};
use tollgate::{Clock, HashKey};
use tollgate_policy::{DecisionClock, RedisSettings};
use tollgate_redis::ClientRole;

use crate::deny_cache_ttl::{Refunds, deny_cache_ttl};
use crate::error::OpenError;
use crate::map_status::MapStatus;
use crate::map_watch::MapWatch;
use crate::servers::check_sources;
use crate::shard_map::ShardMap;
use crate::status::{Counts, ShardStatus};
use crate::store_clock::StoreClock;
use crate::watch::Watch;

/// What is around the shards.
pub(crate) type Layers =
    QuotaRescale<DenyCache<Fallback<Deadline<QuotaLease<Arc<ShardMap>>>, LocalShare<Memory>>>>;

/// Limits in shards of Redis or Valkey.
///
/// Refusals that stand are answered here; all else is asked of the shard that is the subject's
/// home, of several at once where it must be, or decided out of a lease of this node where the
/// limit says so; what has no answer within the deadline is decided by this node's share. Each
/// layer says what it weakens and by how much: [`DenyCache`], [`Fallback`], [`LocalShare`], [`Deadline`], [`QuotaLease`], [`Atomic`](tollgate::store::Atomic),
/// [`Sharded`](tollgate::store::Sharded), [`FailoverReplay`](tollgate::store::FailoverReplay),
/// [`RedisShard`](tollgate_redis::RedisShard); and, while subjects move from one map of shards to
/// another, [`Rebalance`](tollgate::store::Rebalance).
#[derive(Debug)]
pub struct RedisBackend {
    store: Layers,
    clock: DecisionClock,
    watch: Watch,
    /// What this node says of its map, if it takes part.
    map_watch: Option<MapWatch>,
    /// Gives back what this node took in advance and does not use.
    _sweeper: Sweeper,
    discarded: AtomicU64,
}

impl RedisBackend {
    /// Opens the shards of `redis`, and begins to connect. A node says at them which map it uses and
    /// waits for others that use another; for an observer nobody waits.
    pub(crate) fn open(
        redis: &RedisSettings,
        key: HashKey,
        policy: &Policy,
        fallback_store: Bounds,
        refunds: Refunds,
        client_role: ClientRole,
    ) -> Result<Self, OpenError> {
        if Handle::try_current().is_err() {
            return Err(OpenError::NoRuntime);
        }
        check_sources(redis)?;
        let shards =
            Arc::new(ShardMap::open(redis, &key, shard_deadline(redis.deadline), client_role)?);
        let map_watch = match client_role {
            ClientRole::ReadWrite => Some(MapWatch::start(Arc::clone(&shards), key, policy)),
            ClientRole::ReadOnly => None,
        };
        let map_watch = map_watch.transpose().map_err(OpenError::Heartbeat)?;
        let watch = Watch::start(Arc::clone(&shards), policy);
        let leased = QuotaLease::new(shards, LeaseConfig::for_nodes(redis.nodes));
        let sweeper = leased.start_sweeping();
        let exact = Deadline::new(leased).with_budget(redis.deadline);
        let share = LocalShare::new(Memory::new(fallback_store), redis.nodes);
        let deny_cache_ttl = deny_cache_ttl(redis, policy, refunds);
        let refused = DenyCache::new(Fallback::new(exact, share)).with_ttl(deny_cache_ttl);
        let store = QuotaRescale::new(refused);
        let discarded = AtomicU64::new(0);
        Ok(Self { store, clock: redis.clock, watch, map_watch, _sweeper: sweeper, discarded })
    }

    /// How the shards stand, in the order of the settings.
    #[must_use]
    pub fn status(&self) -> Vec<ShardStatus> {
        self.shards().shards().map(ShardStatus::of).collect()
    }

    /// Which map of shards this node uses, what others use, and how far a move is. What an
    /// [observer](ClientRole::ReadOnly) does not ask, it does not know.
    #[must_use]
    pub fn map_status(&self) -> MapStatus {
        let nothing_heard =
            || MapStatus { version: self.shards().version(), nodes: None, moving: None };
        self.map_watch.as_ref().map_or_else(nothing_heard, MapWatch::status)
    }

    /// What was decided without a shard, and what went wrong, since the fleet was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let refused = self.store.store();
        let fallback = refused.store();
        let stood_in = fallback.counts();
        Counts {
            remembered: refused.hits(),
            stood_in: stood_in.stood_in,
            unanswered: stood_in.unanswered,
            missed: fallback.store().missed(),
            unrefunded: self.shards().unrefunded(),
            discarded: self.discarded.load(Ordering::Relaxed),
            repaired: self.shards().repaired(),
            leases: fallback.store().store().counts(),
        }
    }

    pub(crate) async fn started(&self) -> Vec<ShardStatus> {
        self.watch.started().await;
        self.status()
    }

    /// Goes on for `policy`: what it can give back is not refused from memory for long.
    pub(crate) fn follow(&self, redis: &RedisSettings, policy: &Policy, refunds: Refunds) {
        self.store.store().set_ttl(deny_cache_ttl(redis, policy, refunds));
        self.watch.follow(policy);
        if let Some(map_watch) = &self.map_watch {
            map_watch.follow(policy);
        }
    }

    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        let clock: Arc<dyn Clock> = match self.clock {
            DecisionClock::Application => Arc::new(clock),
            DecisionClock::Store => Arc::new(StoreClock::new(clock, Arc::clone(self.shards()))),
        };
        self.watch.set_clock(Arc::clone(&clock));
        clock
    }

    pub(crate) const fn layers(&self) -> &Layers {
        &self.store
    }

    /// Gives back what this node took in advance and did not use: before the process ends.
    pub(crate) async fn refund_leases(&self, now: Timestamp) {
        self.quota_lease().refund_all(now).await;
    }

    fn quota_lease(&self) -> &QuotaLease<Arc<ShardMap>> {
        self.store.store().store().store().store()
    }

    pub(crate) fn shards(&self) -> &Arc<ShardMap> {
        self.quota_lease().store()
    }
}

impl Store for RedisBackend {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let readings = self.store.apply(now, charges).await?;
        let found = |reading: &Reading| reading.found == StoredState::Discarded;
        // What is remembered was counted when it was heard.
        if readings.source() == DecisionSource::Store && readings.iter().any(found) {
            self.discarded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(readings)
    }
}

/// A shard's part of a decision's `deadline`. It leaves a timer's grain or more, so that the shard
/// hears of each decision that it missed, and opens its circuit, before the decision is given up.
fn shard_deadline(deadline: Duration) -> Duration {
    let left = TIMER_GRAIN.max(deadline / 16);
    deadline.saturating_sub(left).max(deadline / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_has_all_but_a_grain_of_the_deadline() {
        let millis = Duration::from_millis;
        assert_eq!(shard_deadline(millis(15)), millis(14));
        assert_eq!(shard_deadline(millis(320)), millis(300));
        assert_eq!(shard_deadline(millis(1)), Duration::from_micros(500));
    }
}
