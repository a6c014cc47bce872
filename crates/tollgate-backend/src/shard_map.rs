//! The map of shards that is in force, or the two between which subjects move.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tollgate::HashKey;
use tollgate::core::{Cell, Cells, Charge, Place, Readings, Store, StoreError, Subject, Timestamp};
use tollgate::store::carry::{Phase, Shards};
use tollgate::store::repair::Repaired;
use tollgate::store::rollout::DEFAULT_ARRIVALS;
use tollgate::store::sharded::{MapVersion, Routing};
use tollgate::store::{Atomic, Carry, Sharded, Timed};
use tollgate_policy::{RedisSettings, ShardSettings};
use tollgate_redis::Presence;

use crate::error::OpenError;
use crate::fleet_shard::{FleetShard, Shard, TimedShard};

/// The shards, together all or nothing.
#[derive(Debug)]
pub(crate) enum ShardMap {
    /// Under one map.
    Fixed(Shards<TimedShard>),
    /// Under two, between which subjects move with what they used.
    Moving {
        /// The move.
        carry: Box<Carry<TimedShard>>,
        /// Those that go.
        leaving: Vec<Shard>,
    },
}

impl ShardMap {
    /// Opens the shards of `redis`, each decision at one of which may take as long as `deadline`.
    pub(crate) fn open(
        redis: &RedisSettings,
        key: &HashKey,
        deadline: Duration,
        presence: Presence,
    ) -> Result<Self, OpenError> {
        let mut opened = HashMap::new();
        let mut open = |shard: &ShardSettings| {
            let store = match opened.get(&shard.name) {
                Some(store) => Arc::clone(store),
                None => {
                    let opened = FleetShard::open(redis, shard, key, deadline, presence)?;
                    Arc::new(Timed::new(opened))
                }
            };
            opened.insert(shard.name.clone(), Arc::clone(&store));
            Ok(Shard { name: shard.name.clone(), weight: shard.weight.get(), store })
        };
        let after = redis.shards.iter().map(&mut open).collect::<Result<Vec<_>, _>>()?;
        let after = sharded(key, after, redis.route_by.as_deref())?;
        let Some(previous) = &redis.previous else {
            return Ok(Self::Fixed(Atomic::new(after)));
        };
        let before = previous.shards.iter().map(&mut open).collect::<Result<Vec<_>, _>>()?;
        let stays = |shard: &&Shard| redis.shards.iter().any(|other| other.name == shard.name);
        let leaving = before.iter().filter(|shard| !stays(shard)).map(same).collect();
        let before = sharded(key, before, previous.route_by.as_deref())?;
        let carry = Carry::new(before, after).with_arrivals(DEFAULT_ARRIVALS, redis.deadline);
        Ok(Self::Moving { carry: Box::new(carry), leaving })
    }

    /// The shards of the settings in their order, then those that go.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Shard> {
        let (stay, leaving) = match self {
            Self::Fixed(shards) => (shards, &[][..]),
            Self::Moving { carry, leaving } => (carry.after(), &leaving[..]),
        };
        stay.homes().shards().iter().chain(leaving)
    }

    /// The shards of the map that is left, if there is one, or of the one in force.
    pub(crate) fn shards_before(&self) -> &[Shard] {
        match self {
            Self::Fixed(shards) => shards.homes().shards(),
            Self::Moving { carry, .. } => carry.before().homes().shards(),
        }
    }

    /// The shard on which `subject` lives by the map in force, or that is to be.
    pub(crate) fn home_of(&self, subject: &Subject) -> &FleetShard {
        let shards = match self {
            Self::Fixed(shards) => shards,
            Self::Moving { carry, .. } => carry.after(),
        };
        shards.homes().home_of(subject).store.store()
    }

    /// The move, if there is one.
    pub(crate) fn carry(&self) -> Option<&Carry<TimedShard>> {
        match self {
            Self::Fixed(_) => None,
            Self::Moving { carry, .. } => Some(carry),
        }
    }

    /// Which map it is, or is to be.
    pub(crate) fn version(&self) -> MapVersion {
        match self {
            Self::Fixed(shards) => shards.homes().version(),
            Self::Moving { carry, .. } => carry.after().homes().version(),
        }
    }

    /// Charges that were taken for nothing and could not be given back.
    pub(crate) fn stranded(&self) -> u64 {
        let over_shards = match self {
            Self::Fixed(shards) => shards.stranded(),
            Self::Moving { carry, .. } => carry.before().stranded() + carry.after().stranded(),
        };
        over_shards + self.shards().map(|shard| shard.store.store().stranded()).sum::<u64>()
    }

    /// What shards lacked after failovers, and were told.
    pub(crate) fn repaired(&self) -> Repaired {
        self.shards().map(|shard| shard.store.store().repaired()).sum()
    }
}

impl Store for ShardMap {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        match self {
            Self::Fixed(shards) => shards.apply(now, charges).await,
            // Boxed, so that it makes no call without a move larger.
            Self::Moving { carry, .. } => Box::pin(carry.apply(now, charges)).await,
        }
    }
}

/// While shards move, the cells are those of the owners that decide, and joined at all of them.
impl Cells for ShardMap {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let carry = match self {
            Self::Fixed(shards) => return shards.cells(now, places).await,
            Self::Moving { carry, .. } => carry,
        };
        let phase = carry.phase();
        if phase == Phase::Over {
            return carry.after().cells(now, places).await;
        }
        let before = carry.before().cells(now, places).await?;
        if phase == Phase::Following {
            return Ok(before);
        }
        // What has not arrived yet is where it was.
        let after = carry.after().cells(now, places).await?;
        Ok(after.into_iter().zip(before).map(|(after, before)| after.or(before)).collect())
    }

    async fn join(&self, now: Timestamp, cells: &[(Place<'_>, Cell)]) -> Result<(), StoreError> {
        match self {
            Self::Fixed(shards) => shards.join(now, cells).await,
            Self::Moving { carry, .. } => {
                if carry.phase() == Phase::Following {
                    carry.before().join(now, cells).await?;
                }
                carry.after().join(now, cells).await
            }
        }
    }
}

/// How subjects are spread by the one of this name.
pub(crate) fn routing(route_by: Option<&str>) -> Routing {
    route_by.map_or(Routing::First, |name| Routing::Dimension(name.into()))
}

fn sharded(
    key: &HashKey,
    shards: Vec<Shard>,
    route_by: Option<&str>,
) -> Result<Sharded<Arc<TimedShard>>, OpenError> {
    let sharded = Sharded::new(key.clone(), shards).map_err(OpenError::Shards)?;
    Ok(sharded.with_routing(routing(route_by)))
}

fn same(shard: &Shard) -> Shard {
    Shard { name: shard.name.clone(), weight: shard.weight, store: Arc::clone(&shard.store) }
}
