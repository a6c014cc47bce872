//! The store that a policy file names.

use std::sync::Arc;

use tollgate::core::{Charge, Policy, Readings, Store, StoreError, Timestamp};
use tollgate::store::{Memory, Scaled};
use tollgate::{Clock, HashKey};
use tollgate_policy::{Settings, StoreSettings};
use tollgate_redis::Presence;

use crate::compared::Compared;
use crate::error::OpenError;
use crate::leaf::Leaf;
use crate::memcached_fleet::MemcachedFleet;
use crate::memory_bounds::memory_bounds;
use crate::moving::Moving;
use crate::recall::Refunds;
use crate::redis_fleet::RedisFleet;
use crate::status::ShardStatus;

/// Where a deployment keeps its limits, as its policy file says.
#[derive(Debug)]
pub enum Backend {
    /// In this process.
    Memory(Box<Scaled<Memory>>),
    /// In Redis or Valkey.
    Redis(Box<RedisFleet>),
    /// In memcached.
    Memcached(Box<MemcachedFleet>),
    /// In one of two stores, by a percentage of subjects.
    Rollout(Box<Moving>),
    /// In a store with which another one is compared.
    Shadow(Box<Compared>),
}

impl Backend {
    /// Opens the store of `settings`, for limits of `policy`, whose charges are given back as
    /// `refunds` says.
    ///
    /// `key` hashes subjects: [`hash_key`](crate::hash_key) makes the one that the file names. A
    /// store in Redis begins to connect, and answers from the first moment on; it needs a tokio
    /// runtime with a timer and sockets, and is closed when it is dropped.
    ///
    /// # Errors
    /// [`OpenError`] for what no waiting mends: settings that name no server, files and variables
    /// that are not there. A server that does not answer is no error.
    pub fn open(
        settings: &Settings,
        key: HashKey,
        policy: &Policy,
        refunds: Refunds,
    ) -> Result<Self, OpenError> {
        Self::open_as(Presence::Node, settings, key, policy, refunds)
    }

    /// As [`open`](Self::open), as a node or as somebody who looks.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub fn open_as(
        presence: Presence,
        settings: &Settings,
        key: HashKey,
        policy: &Policy,
        refunds: Refunds,
    ) -> Result<Self, OpenError> {
        let stand_in = memory_bounds(settings.store.memory());
        match &settings.store {
            StoreSettings::Memory(_) => {
                Ok(Self::Memory(Box::new(Scaled::new(Memory::new(stand_in)))))
            }
            StoreSettings::Redis(redis) => {
                let fleet = RedisFleet::open(redis, key, policy, stand_in, refunds, presence)?;
                Ok(Self::Redis(Box::new(fleet)))
            }
            StoreSettings::Memcached(memcached) => {
                let fleet = MemcachedFleet::open(memcached, key, stand_in)?;
                Ok(Self::Memcached(Box::new(fleet)))
            }
            StoreSettings::Rollout(rollout) => {
                Ok(Self::Rollout(Box::new(Moving::open(rollout, &key, policy)?)))
            }
            StoreSettings::Shadow(shadow) => {
                Ok(Self::Shadow(Box::new(Compared::open(shadow, &key, policy, refunds)?)))
            }
        }
    }

    /// Waits until every shard is connected, for [`START_WAIT`](crate::START_WAIT) at most, and
    /// answers how they stand. There are none in memory.
    pub async fn started(&self) -> Vec<ShardStatus> {
        match self {
            Self::Memory(_) => Vec::new(),
            Self::Redis(fleet) => fleet.started().await,
            Self::Memcached(fleet) => {
                fleet.started().await;
                Vec::new()
            }
            Self::Rollout(moving) => {
                moving.started().await;
                self.status()
            }
            Self::Shadow(compared) => {
                compared.started().await;
                self.status()
            }
        }
    }

    /// How the shards stand, in the order of the settings, of two stores the first one's
    /// first: those in Redis.
    #[must_use]
    pub fn status(&self) -> Vec<ShardStatus> {
        self.leaves().iter().flat_map(|(_, leaf)| leaf.shards()).collect()
    }

    /// The stores that limits are kept in: one under no name, or two under their keys in the
    /// policy file, such as `from` and `to`.
    #[must_use]
    pub fn leaves(&self) -> Vec<(&'static str, Leaf<'_>)> {
        match self {
            Self::Memory(memory) => vec![("", Leaf::Memory(memory.store()))],
            Self::Redis(fleet) => vec![("", Leaf::Redis(fleet))],
            Self::Memcached(fleet) => vec![("", Leaf::Memcached(fleet))],
            Self::Rollout(moving) => {
                vec![("from", moving.from().leaf()), ("to", moving.to().leaf())]
            }
            Self::Shadow(compared) => vec![
                ("store", compared.store().leaf()),
                ("compared_with", compared.compared_with().leaf()),
            ],
        }
    }

    /// Gives back what this node took of leased limits in advance and did not use: before the
    /// process ends. What no server takes back stays used until its window is over.
    pub async fn give_back_leases(&self, now: Timestamp) {
        for (_, leaf) in self.leaves() {
            leaf.give_back_leases(now).await;
        }
    }

    /// Goes on for `policy` and what may change of `settings`: before the policy is in force.
    pub(crate) fn follow(&self, settings: &Settings, policy: &Policy, refunds: Refunds) {
        match (self, &settings.store) {
            (Self::Redis(fleet), StoreSettings::Redis(redis)) => {
                fleet.follow(redis, policy, refunds);
            }
            (Self::Rollout(moving), StoreSettings::Rollout(rollout)) => {
                moving.follow(rollout, policy);
            }
            (Self::Shadow(compared), StoreSettings::Shadow(shadow)) => {
                compared.follow(shadow, policy, refunds);
            }
            _ => {}
        }
    }

    /// The clock by which this store's limits are decided: `clock`, set by the shards' own where
    /// the settings say so.
    #[must_use]
    pub fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        match self {
            Self::Memory(_) | Self::Memcached(_) => Arc::new(clock),
            Self::Redis(fleet) => fleet.clock(clock),
            Self::Rollout(moving) => moving.clock(clock),
            Self::Shadow(compared) => compared.clock(clock),
        }
    }
}

impl Store for Backend {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        match self {
            Self::Memory(memory) => memory.apply(now, charges).await,
            // Boxed, so that what waits for the network makes no call to memory larger.
            Self::Redis(fleet) => Box::pin(fleet.apply(now, charges)).await,
            Self::Memcached(fleet) => Box::pin(fleet.apply(now, charges)).await,
            Self::Rollout(moving) => Box::pin(moving.apply(now, charges)).await,
            Self::Shadow(compared) => Box::pin(compared.apply(now, charges)).await,
        }
    }
}
