//! Shards of Redis or Valkey as one store, with all that an outage asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tollgate::core::{
    Charge, Found, Policy, Reading, Readings, Source, Store, StoreError, Timestamp,
};
use tollgate::store::deadline::TIMER_GRAIN;
use tollgate::store::memory::Bounds;
use tollgate::store::sharded::Routing;
use tollgate::store::{Atomic, Deadline, Fallback, Memory, Refused, Shard, Sharded, Share};
use tollgate::{Clock, HashKey};
use tollgate_policy::{DecidingClock, RedisSettings, ShardSettings};
use tollgate_redis::{Keys, RedisShard};

use crate::error::OpenError;
use crate::recall::{Refunds, recall};
use crate::servers::{check_sources, choice, servers};
use crate::status::{Counts, ShardStatus};
use crate::store_clock::StoreClock;
use crate::watch::Watch;

/// The shards, together all or nothing.
pub(crate) type Shards = Atomic<Sharded<RedisShard>>;

/// What is around the shards.
pub(crate) type Layers = Refused<Fallback<Deadline<Arc<Shards>>, Share<Memory>>>;

/// Limits in shards of Redis or Valkey.
///
/// Refusals that stand are answered here; all else is asked of the shard that is the subject's
/// home, of several at once where it must be; what has no answer within the deadline is decided
/// by this node's share. Each layer says what it weakens and by how much: [`Refused`],
/// [`Fallback`], [`Share`], [`Deadline`], [`Atomic`], [`Sharded`], [`RedisShard`].
#[derive(Debug)]
pub struct RedisFleet {
    store: Layers,
    clock: DecidingClock,
    watch: Watch,
    discarded: AtomicU64,
}

impl RedisFleet {
    /// Opens the shards of `redis`, and begins to connect.
    pub(crate) fn open(
        redis: &RedisSettings,
        key: HashKey,
        policy: &Policy,
        stand_in: Bounds,
        refunds: Refunds,
    ) -> Result<Self, OpenError> {
        if Handle::try_current().is_err() {
            return Err(OpenError::NoRuntime);
        }
        check_sources(redis)?;
        let opened = redis.shards.iter().map(|shard| open_shard(redis, shard, &key));
        let opened = opened.collect::<Result<Vec<_>, _>>()?;
        let routing = redis.route_by.clone().map_or(Routing::First, Routing::Dimension);
        let sharded = Sharded::new(key, opened).map_err(OpenError::Shards)?.with_routing(routing);
        let shards = Arc::new(Atomic::new(sharded));
        let watch = Watch::start(Arc::clone(&shards), policy);
        let exact = Deadline::new(shards).with_budget(redis.deadline);
        let share = Share::new(Memory::new(stand_in), redis.nodes);
        let recall = recall(redis, policy, refunds);
        let store = Refused::new(Fallback::new(exact, share)).with_recall(recall);
        Ok(Self { store, clock: redis.clock, watch, discarded: AtomicU64::new(0) })
    }

    /// How the shards stand, in the order of the settings.
    #[must_use]
    pub fn status(&self) -> Vec<ShardStatus> {
        self.shards().homes().shards().iter().map(ShardStatus::of).collect()
    }

    /// What was decided without a shard, and what went wrong, since the fleet was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let fallback = self.store.store();
        let stood_in = fallback.counts();
        Counts {
            remembered: self.store.answered(),
            stood_in: stood_in.stood_in,
            unanswered: stood_in.unanswered,
            missed: fallback.store().missed(),
            stranded: self.shards().stranded(),
            discarded: self.discarded.load(Ordering::Relaxed),
        }
    }

    pub(crate) async fn started(&self) -> Vec<ShardStatus> {
        self.watch.started().await;
        self.status()
    }

    /// Goes on for `policy`: what it can give back is not refused from memory for long.
    pub(crate) fn follow(&self, redis: &RedisSettings, policy: &Policy, refunds: Refunds) {
        self.store.set_recall(recall(redis, policy, refunds));
        self.watch.follow(policy);
    }

    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        match self.clock {
            DecidingClock::Application => Arc::new(clock),
            DecidingClock::Store => Arc::new(StoreClock::new(clock, Arc::clone(self.shards()))),
        }
    }

    pub(crate) const fn layers(&self) -> &Layers {
        &self.store
    }

    fn shards(&self) -> &Arc<Shards> {
        self.store.store().store().store()
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

fn open_shard(
    redis: &RedisSettings,
    shard: &ShardSettings,
    key: &HashKey,
) -> Result<Shard<RedisShard>, OpenError> {
    let servers = servers(redis, shard)?;
    let keys =
        redis.revealed.iter().fold(Keys::new(key.clone()), |keys, limit| keys.with_revealed(limit));
    let clock = match redis.clock {
        DecidingClock::Application => tollgate_redis::DecidingClock::Application,
        DecidingClock::Store => tollgate_redis::DecidingClock::Shard,
    };
    let store = RedisShard::open(&servers, keys, choice(redis.step))
        .with_deadline(shard_deadline(redis.deadline))
        .with_clock(clock);
    Ok(Shard { name: shard.name.clone(), weight: shard.weight.get(), store })
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
