//! Shards of Redis or Valkey as one store, with all that an outage asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tollgate::core::{
    Charge, Found, Policy, Reading, Readings, Source, Store, StoreError, Timestamp,
};
use tollgate::store::deadline::TIMER_GRAIN;
use tollgate::store::leased::{LeaseTerms, Sweeper};
use tollgate::store::memory::Bounds;
use tollgate::store::{Deadline, Fallback, Leased, Memory, Refused, Scaled, Share};
use tollgate::{Clock, HashKey};
use tollgate_policy::{DecidingClock, RedisSettings};
use tollgate_redis::Presence;

use crate::error::OpenError;
use crate::map_status::MapStatus;
use crate::map_watch::MapWatch;
use crate::recall::{Refunds, recall};
use crate::servers::check_sources;
use crate::shard_map::ShardMap;
use crate::status::{Counts, ShardStatus};
use crate::store_clock::StoreClock;
use crate::watch::Watch;

/// What is around the shards.
pub(crate) type Layers = Scaled<Refused<Fallback<Deadline<Leased<Arc<ShardMap>>>, Share<Memory>>>>;

/// Limits in shards of Redis or Valkey.
///
/// Refusals that stand are answered here; all else is asked of the shard that is the subject's
/// home, of several at once where it must be, or decided out of a lease of this node where the
/// limit says so; what has no answer within the deadline is decided by this node's share. Each
/// layer says what it weakens and by how much: [`Refused`], [`Fallback`], [`Share`], [`Deadline`], [`Leased`], [`Atomic`](tollgate::store::Atomic),
/// [`Sharded`](tollgate::store::Sharded), [`Repair`](tollgate::store::Repair),
/// [`RedisShard`](tollgate_redis::RedisShard); and, while subjects move from one map of shards to
/// another, [`Carry`](tollgate::store::Carry).
#[derive(Debug)]
pub struct RedisFleet {
    store: Layers,
    clock: DecidingClock,
    watch: Watch,
    /// What this node says of its map, if it takes part.
    map_watch: Option<MapWatch>,
    /// Gives back what this node took in advance and does not use.
    _sweeper: Sweeper,
    discarded: AtomicU64,
}

impl RedisFleet {
    /// Opens the shards of `redis`, and begins to connect. A node says at them which map it uses and
    /// waits for others that use another; for an observer nobody waits.
    pub(crate) fn open(
        redis: &RedisSettings,
        key: HashKey,
        policy: &Policy,
        stand_in: Bounds,
        refunds: Refunds,
        presence: Presence,
    ) -> Result<Self, OpenError> {
        if Handle::try_current().is_err() {
            return Err(OpenError::NoRuntime);
        }
        check_sources(redis)?;
        let shards =
            Arc::new(ShardMap::open(redis, &key, shard_deadline(redis.deadline), presence)?);
        let map_watch = match presence {
            Presence::Node => Some(MapWatch::start(Arc::clone(&shards), key, policy)),
            Presence::Observer => None,
        };
        let map_watch = map_watch.transpose().map_err(OpenError::Census)?;
        let watch = Watch::start(Arc::clone(&shards), policy);
        let leased = Leased::new(shards, LeaseTerms::for_nodes(redis.nodes));
        let sweeper = leased.start_sweeping();
        let exact = Deadline::new(leased).with_budget(redis.deadline);
        let share = Share::new(Memory::new(stand_in), redis.nodes);
        let recall = recall(redis, policy, refunds);
        let refused = Refused::new(Fallback::new(exact, share)).with_recall(recall);
        let store = Scaled::new(refused);
        let discarded = AtomicU64::new(0);
        Ok(Self { store, clock: redis.clock, watch, map_watch, _sweeper: sweeper, discarded })
    }

    /// How the shards stand, in the order of the settings.
    #[must_use]
    pub fn status(&self) -> Vec<ShardStatus> {
        self.shards().shards().map(ShardStatus::of).collect()
    }

    /// Which map of shards this node uses, what others use, and how far a move is. What an
    /// [observer](Presence::Observer) does not ask, it does not know.
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
            remembered: refused.answered(),
            stood_in: stood_in.stood_in,
            unanswered: stood_in.unanswered,
            missed: fallback.store().missed(),
            stranded: self.shards().stranded(),
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
        self.store.store().set_recall(recall(redis, policy, refunds));
        self.watch.follow(policy);
        if let Some(map_watch) = &self.map_watch {
            map_watch.follow(policy);
        }
    }

    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        let clock: Arc<dyn Clock> = match self.clock {
            DecidingClock::Application => Arc::new(clock),
            DecidingClock::Store => Arc::new(StoreClock::new(clock, Arc::clone(self.shards()))),
        };
        self.watch.go_by(Arc::clone(&clock));
        clock
    }

    pub(crate) const fn layers(&self) -> &Layers {
        &self.store
    }

    /// Gives back what this node took in advance and did not use: before the process ends.
    pub(crate) async fn give_back_leases(&self, now: Timestamp) {
        self.leased().give_back_all(now).await;
    }

    fn leased(&self) -> &Leased<Arc<ShardMap>> {
        self.store.store().store().store().store()
    }

    pub(crate) fn shards(&self) -> &Arc<ShardMap> {
        self.leased().store()
    }
}

impl Store for RedisFleet {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let readings = self.store.apply(now, charges).await?;
        let found = |reading: &Reading| reading.found == Found::Discarded;
        // What is remembered was counted when it was heard.
        if readings.source() == Source::Store && readings.iter().any(found) {
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
