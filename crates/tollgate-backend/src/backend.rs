//! The store that a policy file names.

use std::sync::Arc;

use tollgate::core::{Charge, Policy, Readings, Store, StoreError, Timestamp};
use tollgate::store::{Memory, QuotaRescale};
use tollgate::{Clock, HashKey};
use tollgate_policy::{Settings, StoreSettings};
use tollgate_redis::ClientRole;

use crate::base_store::BaseStore;
use crate::deny_cache_ttl::Refunds;
use crate::error::OpenError;
use crate::memcached_backend::MemcachedBackend;
use crate::memory_bounds::memory_bounds;
use crate::redis_backend::RedisBackend;
use crate::rollout_backend::RolloutBackend;
use crate::shadow_backend::ShadowBackend;
use crate::status::ShardStatus;

/// Where a deployment keeps its limits, as its policy file says.
#[derive(Debug)]
pub enum Backend {
    /// In this process.
    Memory(Box<QuotaRescale<Memory>>),
    /// In Redis or Valkey.
    Redis(Box<RedisBackend>),
    /// In memcached.
    Memcached(Box<MemcachedBackend>),
    /// In one of two stores, by a percentage of subjects.
    Rollout(Box<RolloutBackend>),
    /// In a store with which another one is compared.
    Shadow(Box<ShadowBackend>),
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
        Self::open_as(ClientRole::ReadWrite, settings, key, policy, refunds)
    }

    /// As [`open`](Self::open), as a node or as somebody who looks.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub fn open_as(
        client_role: ClientRole,
        settings: &Settings,
        key: HashKey,
        policy: &Policy,
        refunds: Refunds,
    ) -> Result<Self, OpenError> {
        let fallback_store = memory_bounds(settings.store.memory());
        match &settings.store {
            StoreSettings::Memory(_) => {
                Ok(Self::Memory(Box::new(QuotaRescale::new(Memory::new(fallback_store)))))
            }
            StoreSettings::Redis(redis) => {
                let fleet =
                    RedisBackend::open(redis, key, policy, fallback_store, refunds, client_role)?;
                Ok(Self::Redis(Box::new(fleet)))
            }
            StoreSettings::Memcached(memcached) => {
                let fleet = MemcachedBackend::open(memcached, key, fallback_store)?;
                Ok(Self::Memcached(Box::new(fleet)))
            }
            StoreSettings::Rollout(rollout) => {
                Ok(Self::Rollout(Box::new(RolloutBackend::open(rollout, &key, policy)?)))
            }
            StoreSettings::Shadow(shadow) => {
                Ok(Self::Shadow(Box::new(ShadowBackend::open(shadow, &key, policy, refunds)?)))
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
        self.base_stores().iter().flat_map(|(_, leaf)| leaf.shards()).collect()
    }

    /// The stores that limits are kept in: one under no name, or two under their keys in the
    /// policy file, such as `from` and `to`.
    #[must_use]
    pub fn base_stores(&self) -> Vec<(&'static str, BaseStore<'_>)> {
        match self {
            Self::Memory(memory) => vec![("", BaseStore::Memory(memory.store()))],
            Self::Redis(fleet) => vec![("", BaseStore::Redis(fleet))],
            Self::Memcached(fleet) => vec![("", BaseStore::Memcached(fleet))],
            Self::Rollout(moving) => {
                vec![("from", moving.from().base_store()), ("to", moving.to().base_store())]
            }
            Self::Shadow(compared) => vec![
                ("store", compared.store().base_store()),
                ("shadow_store", compared.shadow_store().base_store()),
            ],
        }
    }

    /// Gives back what this node took of leased limits in advance and did not use: before the
    /// process ends. What no server takes back stays used until its window is over.
    pub async fn refund_leases(&self, now: Timestamp) {
        for (_, leaf) in self.base_stores() {
            leaf.refund_leases(now).await;
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
