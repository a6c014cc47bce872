//! Shards of Redis or Valkey as one store, with the wrappers that handle outages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::model::{
    Charge, DecisionSource, Policy, Reading, Readings, Store, StoreError, StoredState, Timestamp,
};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;
use tollgate::{Clock, HashKey, SystemClock};
use tollgate_policy::{DecisionClock, RedisSettings};
use tollgate_redis::ClientRole;
use tollgate_stores::deadline::TIMER_GRAIN;
use tollgate_stores::quota_lease::{LeaseConfig, Sweeper};
use tollgate_stores::{Deadline, DenyCache, Fallback, LocalShare, QuotaLease, QuotaRescale};

use crate::deny_cache_ttl::{Refunds, deny_cache_ttl};
use crate::error::OpenError;
use crate::map_status::MapStatus;
use crate::map_watch::MapWatch;
use crate::servers::check_sources;
use crate::shard_map::ShardMap;
use crate::status::{Counts, ShardStatus};
use crate::store_clock::{StoreClock, Tolerance};
use crate::watch::{Deciding, WATCH_PERIOD, Watch};

/// The wrappers around the shards.
pub(crate) type Layers = QuotaRescale<DenyCache<Arc<Decider>>>;

/// The shards within the deadline, or this node alone.
type Decider = Fallback<Deadline<QuotaLease<Arc<ShardMap>>>, LocalShare<Memory>>;

/// Limits in shards of Redis or Valkey.
///
/// Remembered refusals are answered here. All other calls go to the shard that owns the subject, or
/// to several shards if necessary, or are decided from a quota lease of this node if the limit uses
/// leases. If there is no answer within the deadline, this node's share decides. The documentation
/// of each layer describes its weaker guarantees and their bounds: [`DenyCache`], [`Fallback`],
/// [`LocalShare`], [`Deadline`], [`QuotaLease`], [`Atomic`](tollgate_stores::Atomic),
/// [`Sharded`](tollgate_stores::Sharded), [`FailoverReplay`](tollgate_stores::FailoverReplay),
/// [`RedisShard`](tollgate_redis::RedisShard); and, while subjects move from one shard map to
/// another, [`Rebalance`](tollgate_stores::Rebalance).
#[derive(Debug)]
pub struct RedisBackend {
    store: Layers,
    clock: DecisionClock,
    watch: Watch,
    /// The heartbeats of this node. `None` for an observer.
    map_watch: Option<MapWatch>,
    /// Refunds unused units of quota leases.
    _sweeper: Sweeper,
    /// Charges the shards for the units that this node admitted alone.
    charging: AbortHandle,
    discarded: AtomicU64,
}

impl RedisBackend {
    /// Opens the shards of `redis` and starts to connect. A node sends heartbeats with its shard
    /// map to them and waits for nodes with another map. An observer sends none.
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
        let watch = Watch::start(Arc::clone(&shards), policy);
        let heartbeats = || MapWatch::start(Arc::clone(&shards), key, policy, watch.deciding());
        let map_watch = match client_role {
            ClientRole::ReadWrite => Some(heartbeats().map_err(OpenError::Heartbeat)?),
            ClientRole::ReadOnly => None,
        };
        let leased = QuotaLease::new(shards, LeaseConfig::for_nodes(redis.nodes));
        let sweeper = leased.start_sweeping();
        let exact = Deadline::new(leased).with_budget(redis.deadline);
        let share = LocalShare::new(Memory::new(fallback_store), redis.nodes);
        let deny_cache_ttl = deny_cache_ttl(redis, policy, refunds);
        let decider = Arc::new(Fallback::new(exact, share).with_budget(redis.deadline));
        let charging = charge_local(Arc::clone(&decider), watch.deciding());
        let refused = DenyCache::new(decider).with_ttl(deny_cache_ttl);
        let store = QuotaRescale::new(refused);
        let discarded = AtomicU64::new(0);
        let clock = redis.clock;
        Ok(Self { store, clock, watch, map_watch, _sweeper: sweeper, charging, discarded })
    }

    /// Returns the status of the shards, in the order of the settings.
    #[must_use]
    pub fn status(&self) -> Vec<ShardStatus> {
        let tolerance = self.tolerance();
        let status = |shard| {
            let status = ShardStatus::of(shard);
            let clock_overridden =
                status.clock_offsets().any(|offset| tolerance.is_exceeded(&offset));
            ShardStatus { clock_overridden, ..status }
        };
        self.shards().shards().map(status).collect()
    }

    /// Returns this node's shard map, the maps of other nodes, and the progress of a rebalance. An
    /// [observer](ClientRole::ReadOnly) does not query the other nodes' maps.
    #[must_use]
    pub fn map_status(&self) -> MapStatus {
        let nothing_heard =
            || MapStatus { version: self.shards().version(), nodes: None, moving: None };
        self.map_watch.as_ref().map_or_else(nothing_heard, MapWatch::status)
    }

    /// Returns the counts of decisions without a shard and of failures, since the store was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let refused = self.store.store();
        let fallback = refused.store();
        let stood_in = fallback.counts();
        Counts {
            remembered: refused.hits(),
            stood_in: stood_in.stood_in,
            local_charges: fallback.local_charges(),
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

    /// Applies `policy`: refusals that its refunds can end are remembered only briefly.
    pub(crate) fn follow(&self, redis: &RedisSettings, policy: &Policy, refunds: Refunds) {
        self.store.store().set_ttl(deny_cache_ttl(redis, policy, refunds));
        self.watch.follow(policy);
        if let Some(map_watch) = &self.map_watch {
            map_watch.follow(policy);
        }
    }

    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        self.shards().shards().for_each(|shard| shard.store.store().check_clock());
        let shards = Arc::clone(self.shards());
        let clock: Arc<dyn Clock> = Arc::new(StoreClock::new(clock, shards, self.tolerance()));
        self.watch.set_clock(Arc::clone(&clock));
        clock
    }

    /// Checks that this node's clock differs from no shard's clock by more than the limits allow.
    /// Otherwise the node decides by the shard's clock and is not ready.
    ///
    /// # Errors
    /// The shard, the difference, and what to do about it.
    pub(crate) fn check_clock(&self) -> Result<(), String> {
        if self.clock == DecisionClock::Store {
            return Ok(());
        }
        let allowed = self.watch.skew_max();
        let shards = self.shards().shards().map(ShardStatus::of);
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

    pub(crate) const fn layers(&self) -> &Layers {
        &self.store
    }

    /// Refunds the unused units of this node's quota leases. Called before the process ends.
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
        // A remembered refusal was counted when it was received.
        if readings.source() == DecisionSource::Store && readings.iter().any(found) {
            self.discarded.fetch_add(1, Ordering::Relaxed);
        }
        Ok(readings)
    }
}

/// Charges the shards once per [`WATCH_PERIOD`] with the units that this node admitted alone, at the
/// time of its decision clock, so they count even if the node receives no more requests.
fn charge_local(decider: Arc<Decider>, clock: Deciding) -> AbortHandle {
    let task = tokio::spawn(async move {
        let mut looks = interval(WATCH_PERIOD);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let now = clock.get().map_or_else(|| SystemClock.now(), |clock| clock.now());
            decider.charge_local(now).await;
        }
    });
    task.abort_handle()
}

impl Drop for RedisBackend {
    fn drop(&mut self) {
        self.charging.abort();
    }
}

/// Returns the shard's part of a decision's `deadline`. It is shorter by at least the grain of a
/// timer, so the circuit breaker sees each missed deadline before the whole decision times out.
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
