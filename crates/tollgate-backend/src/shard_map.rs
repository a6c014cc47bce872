//! The current shard map, or the two maps of a rebalance.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tollgate::HashKey;
use tollgate::model::{
    Cell, CellKey, CellTransfer, Charge, Readings, Store, StoreError, Subject, Timestamp,
};
use tollgate_policy::{RedisSettings, ShardSettings};
use tollgate_redis::{ClientRole, ClockOffset};
use tollgate_stores::failover_replay::ReplayCounts;
use tollgate_stores::rebalance::{Phase, Shards};
use tollgate_stores::rollout::DEFAULT_TRANSFER_ENTRIES;
use tollgate_stores::sharded::{MapVersion, Routing};
use tollgate_stores::{Atomic, CallTimer, Rebalance, Sharded};

use crate::backend_shard::{BackendShard, MeasuredShard, Shard};
use crate::error::OpenError;
use crate::store_clock::OffsetSource;

/// The shards, with all-or-nothing calls.
#[derive(Debug)]
pub(crate) enum ShardMap {
    /// One map.
    Fixed(Shards<MeasuredShard>),
    /// Two maps, between which subjects move with their usage.
    Rebalancing {
        /// The rebalance.
        rebalance: Box<Rebalance<MeasuredShard>>,
        /// The shards that are only in the previous map.
        leaving: Vec<Shard>,
    },
}

impl ShardMap {
    /// Opens the shards of `redis`, with `deadline` as the longest time for a decision at one of
    /// them.
    pub(crate) fn open(
        redis: &RedisSettings,
        key: &HashKey,
        deadline: Duration,
        client_role: ClientRole,
    ) -> Result<Self, OpenError> {
        let mut opened = HashMap::new();
        let mut open = |shard: &ShardSettings| {
            let store = match opened.get(&shard.name) {
                Some(store) => Arc::clone(store),
                None => {
                    let opened = BackendShard::open(redis, shard, key, deadline, client_role)?;
                    Arc::new(CallTimer::new(opened))
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
        let rebalance = Rebalance::new(before, after)
            .with_transfer_entries(DEFAULT_TRANSFER_ENTRIES, redis.deadline);
        Ok(Self::Rebalancing { rebalance: Box::new(rebalance), leaving })
    }

    /// Returns the shards of the settings in their order, then those that are only in the previous
    /// map.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Shard> {
        let (stay, leaving) = match self {
            Self::Fixed(shards) => (shards, &[][..]),
            Self::Rebalancing { rebalance, leaving } => (rebalance.after(), &leaving[..]),
        };
        stay.partitions().shards().iter().chain(leaving)
    }

    /// Returns the shards of the previous map if there is one, otherwise of the current map.
    pub(crate) fn shards_before(&self) -> &[Shard] {
        match self {
            Self::Fixed(shards) => shards.partitions().shards(),
            Self::Rebalancing { rebalance, .. } => rebalance.before().partitions().shards(),
        }
    }

    /// Returns the shard that owns `subject` in the current map; during a rebalance, in the new
    /// one.
    pub(crate) fn shard_for(&self, subject: &Subject) -> &BackendShard {
        let shards = match self {
            Self::Fixed(shards) => shards,
            Self::Rebalancing { rebalance, .. } => rebalance.after(),
        };
        shards.partitions().shard_for(subject).store.store()
    }

    /// Returns the rebalance, if there is one.
    pub(crate) fn rebalance(&self) -> Option<&Rebalance<MeasuredShard>> {
        match self {
            Self::Fixed(_) => None,
            Self::Rebalancing { rebalance, .. } => Some(rebalance),
        }
    }

    /// Returns the version of the current map; during a rebalance, of the new one.
    pub(crate) fn version(&self) -> MapVersion {
        match self {
            Self::Fixed(shards) => shards.partitions().version(),
            Self::Rebalancing { rebalance, .. } => rebalance.after().partitions().version(),
        }
    }

    /// Returns the number of charges of failed calls that could not be refunded.
    pub(crate) fn unrefunded(&self) -> u64 {
        let over_shards = match self {
            Self::Fixed(shards) => shards.unrefunded(),
            Self::Rebalancing { rebalance, .. } => {
                rebalance.before().unrefunded() + rebalance.after().unrefunded()
            }
        };
        over_shards + self.shards().map(|shard| shard.store.store().unrefunded()).sum::<u64>()
    }

    /// Returns the counts of replayed charges after failovers.
    pub(crate) fn repaired(&self) -> ReplayCounts {
        self.shards().map(|shard| shard.store.store().repaired()).sum()
    }
}

impl OffsetSource for ShardMap {
    fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset> {
        self.shards().find_map(|shard| shard.store.store().clock_offset(now))
    }
}

impl Store for ShardMap {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        match self {
            Self::Fixed(shards) => shards.apply(now, charges).await,
            // Boxed, because the future of a rebalance would make every other call larger.
            Self::Rebalancing { rebalance, .. } => Box::pin(rebalance.apply(now, charges)).await,
        }
    }
}

/// During a rebalance, cells are read from the deciding owners and joined into all owners.
impl CellTransfer for ShardMap {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        let rebalance = match self {
            Self::Fixed(shards) => return shards.cells(now, places).await,
            Self::Rebalancing { rebalance, .. } => rebalance,
        };
        let phase = rebalance.phase();
        if phase == Phase::Done {
            return rebalance.after().cells(now, places).await;
        }
        let before = rebalance.before().cells(now, places).await?;
        if phase == Phase::DualWrite {
            return Ok(before);
        }
        // A cell that has not been transferred yet is still at its previous owner.
        let after = rebalance.after().cells(now, places).await?;
        Ok(after.into_iter().zip(before).map(|(after, before)| after.or(before)).collect())
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        match self {
            Self::Fixed(shards) => shards.join(now, cells).await,
            Self::Rebalancing { rebalance, .. } => {
                if rebalance.phase() == Phase::DualWrite {
                    rebalance.before().join(now, cells).await?;
                }
                rebalance.after().join(now, cells).await
            }
        }
    }
}

/// Returns the routing by the dimension `route_by`, or by the first dimension.
pub(crate) fn routing(route_by: Option<&str>) -> Routing {
    route_by.map_or(Routing::First, |name| Routing::Dimension(name.into()))
}

fn sharded(
    key: &HashKey,
    shards: Vec<Shard>,
    route_by: Option<&str>,
) -> Result<Sharded<Arc<MeasuredShard>>, OpenError> {
    let sharded = Sharded::new(key.clone(), shards).map_err(OpenError::Shards)?;
    Ok(sharded.with_routing(routing(route_by)))
}

fn same(shard: &Shard) -> Shard {
    Shard { name: shard.name.clone(), weight: shard.weight, store: Arc::clone(&shard.store) }
}
