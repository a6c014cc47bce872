//! One of two stores.

use std::sync::Arc;

use tollgate::core::{Cell, Cells, Charge, Place, Policy, Readings, Store, StoreError, Timestamp};
use tollgate::store::{Memory, Scaled};
use tollgate::{Clock, HashKey};
use tollgate_policy::{MemoryBounds, SideSettings};
use tollgate_redis::Presence;

use crate::error::OpenError;
use crate::leaf::Leaf;
use crate::memcached_fleet::MemcachedFleet;
use crate::memory_bounds::memory_bounds;
use crate::recall::Refunds;
use crate::redis_fleet::RedisFleet;

/// One of two stores that limits move between, or that are compared: with all around it that it
/// would have alone.
#[derive(Debug)]
pub enum Side {
    /// In this process.
    Memory(Box<Scaled<Memory>>),
    /// In Redis or Valkey.
    Redis(Box<RedisFleet>),
    /// In memcached.
    Memcached(Box<MemcachedFleet>),
}

impl Side {
    pub(crate) fn open(
        settings: &SideSettings,
        key: HashKey,
        policy: &Policy,
        refunds: Refunds,
    ) -> Result<Self, OpenError> {
        let stand_in = memory_bounds(MemoryBounds::default());
        Ok(match settings {
            SideSettings::Memory(bounds) => {
                Self::Memory(Box::new(Scaled::new(Memory::new(memory_bounds(*bounds)))))
            }
            SideSettings::Redis(redis) => Self::Redis(Box::new(RedisFleet::open(
                redis,
                key,
                policy,
                stand_in,
                refunds,
                Presence::Node,
            )?)),
            SideSettings::Memcached(memcached) => {
                Self::Memcached(Box::new(MemcachedFleet::open(memcached, key, stand_in)?))
            }
        })
    }

    /// The same, as any store that limits are kept in.
    #[must_use]
    pub fn leaf(&self) -> Leaf<'_> {
        match self {
            Self::Memory(memory) => Leaf::Memory(memory.store()),
            Self::Redis(fleet) => Leaf::Redis(fleet),
            Self::Memcached(fleet) => Leaf::Memcached(fleet),
        }
    }

    pub(crate) async fn started(&self) {
        match self {
            Self::Memory(_) => {}
            Self::Redis(fleet) => drop(fleet.started().await),
            Self::Memcached(fleet) => fleet.started().await,
        }
    }

    pub(crate) fn follow(&self, settings: &SideSettings, policy: &Policy, refunds: Refunds) {
        if let (Self::Redis(fleet), SideSettings::Redis(redis)) = (self, settings) {
            fleet.follow(redis, policy, refunds);
        }
    }

    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        match self {
            Self::Memory(_) | Self::Memcached(_) => Arc::new(clock),
            Self::Redis(fleet) => fleet.clock(clock),
        }
    }
}

impl Store for Side {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        match self {
            Self::Memory(memory) => memory.apply(now, charges).await,
            // Boxed, so that what waits for the network makes no call to memory larger.
            Self::Redis(fleet) => Box::pin(fleet.apply(now, charges)).await,
            Self::Memcached(fleet) => Box::pin(fleet.apply(now, charges)).await,
        }
    }
}

impl Cells for Side {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[Place<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        match self {
            Self::Memory(memory) => memory.cells(now, places).await,
            Self::Redis(fleet) => Box::pin(fleet.cells(now, places)).await,
            Self::Memcached(fleet) => Box::pin(fleet.cells(now, places)).await,
        }
    }

    async fn join(&self, now: Timestamp, cells: &[(Place<'_>, Cell)]) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => memory.join(now, cells).await,
            Self::Redis(fleet) => Box::pin(fleet.join(now, cells)).await,
            Self::Memcached(fleet) => Box::pin(fleet.join(now, cells)).await,
        }
    }
}
