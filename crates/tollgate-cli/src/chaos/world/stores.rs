//! A node's store in the world that changes.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tollgate::HashKey;
use tollgate::core::{Charge, Readings, Store, StoreError, Timestamp};
use tollgate::store::rollout::DEFAULT_ARRIVALS;
use tollgate::store::sharded::Shard;
use tollgate::store::{Atomic, Deadline, Dial, Fallback, Memory, Percent, Rollout, Sharded, Share};
use tollgate_memcached::Memcached;
use tollgate_redis::{Choice, Gate, RedisShard, ShardSettings};

use super::moving::Moving;
use crate::chaos::error::ChaosError;
use crate::chaos::policy::NODES;
use crate::chaos::wait::PATIENCE;

/// How long bringing a window along may take: longer than by default, because a machine that is busy
/// with the servers as well is no reason to begin a window anew.
pub(super) const CARRIED_WITHIN: Duration = Duration::from_millis(400);

/// A shard by its name.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    name: &'static str,
    store: Arc<RedisShard>,
}

/// The nesting: an old store and shards that replace it, all or nothing, in time, and this node's
/// share where they have no answer.
type Nesting = Fallback<Deadline<Arc<Atomic<Rollout<Memcached, Arc<Moving>>>>>, Share<Memory>>;

/// A node's store: an old one in memcached, shards that replace it, and both kinds of moves.
#[derive(Debug)]
pub(crate) struct WorldStore {
    nesting: Nesting,
    shards: Arc<Moving>,
    primaries: Vec<Named>,
    dial: Dial,
    key: HashKey,
}

impl WorldStore {
    /// All subjects live in `old`; `primaries` are there, and have none.
    pub(crate) fn new(
        key: HashKey,
        old: Memcached,
        primaries: Vec<Named>,
        deadline: Duration,
    ) -> Result<Self, ChaosError> {
        let map = map(&key, &primaries)?;
        let (dial, shards) = (Dial::new(Percent::NONE), Arc::new(Moving::new(map)));
        let rollout = Rollout::new(&key, dial.clone(), old, Arc::clone(&shards))
            .with_arrivals(DEFAULT_ARRIVALS, CARRIED_WITHIN);
        let exact = Deadline::new(Arc::new(Atomic::new(rollout))).with_budget(deadline);
        let nodes = NonZeroU32::MIN.saturating_add(NODES as u32 - 1);
        let nesting = Fallback::new(exact, Share::new(Memory::default(), nodes));
        Ok(Self { nesting, shards, primaries, dial, key })
    }

    /// Sends so many of a hundred subjects to the shards.
    pub(crate) fn turn(&self, percent: Percent) {
        self.dial.set(percent);
    }

    /// Cells that moved from the old store to the shards or back.
    pub(crate) fn rolled_out(&self) -> u64 {
        self.nesting.store().store().homes().carried()
    }

    /// Begins to move subjects to `more`, one shard that is added to the others.
    pub(crate) fn follow(&self, more: Named) -> Result<(), ChaosError> {
        let before = map(&self.key, &self.primaries)?;
        let all: Vec<_> = self.primaries.iter().cloned().chain([more]).collect();
        self.shards.follow(before, map(&self.key, &all)?);
        Ok(())
    }

    /// Lets the new owners decide.
    pub(crate) fn lead(&self) {
        self.shards.lead();
    }

    /// Cells that moved from shard to shard.
    pub(crate) fn carried(&self) -> u64 {
        self.shards.carried()
    }

    /// Where the primary of the shard `name` is, if one answers.
    pub(crate) fn primary(&self, name: &str) -> Option<String> {
        let shard = self.primaries.iter().find(|shard| shard.name == name)?;
        let lane = shard.store.status().into_iter().next()?;
        lane.address.filter(|_| lane.gate == Gate::Closed)
    }
}

impl Store for WorldStore {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.nesting.apply(now, charges).await
    }
}

/// A shard that is connected.
pub(crate) async fn shard_of(
    key: &HashKey,
    name: &'static str,
    settings: &ShardSettings,
    deadline: Duration,
) -> Result<Named, ChaosError> {
    let keys = tollgate_redis::Keys::new(key.clone());
    let store = RedisShard::open(settings, keys, Choice::Best).with_deadline(deadline);
    store.ready(PATIENCE).await.map_err(ChaosError::Link)?;
    Ok(Named { name, store: Arc::new(store) })
}

fn map(key: &HashKey, shards: &[Named]) -> Result<Sharded<Arc<RedisShard>>, ChaosError> {
    let shard = |Named { name, store }: &Named| Shard {
        name: (*name).into(),
        weight: 1,
        store: Arc::clone(store),
    };
    Sharded::new(key.clone(), shards.iter().map(shard)).map_err(ChaosError::Map)
}
