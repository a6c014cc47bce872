//! The store that a policy file selects.

use std::sync::Arc;

use tollgate::model::{Charge, Policy, Readings, Store, StoreError, Timestamp};
use tollgate::store::Memory;
use tollgate::{Clock, HashKey};
use tollgate_policy::{Settings, StoreSettings};
use tollgate_redis::ClientRole;
use tollgate_stores::QuotaRescale;

use crate::base_store::BaseStore;
use crate::deny_cache_ttl::Refunds;
use crate::error::OpenError;
use crate::memcached_backend::MemcachedBackend;
use crate::memory_bounds::memory_bounds;
use crate::redis_backend::RedisBackend;
use crate::rollout_backend::RolloutBackend;
use crate::shadow_backend::ShadowBackend;
use crate::status::ShardStatus;

/// The store for a deployment's limits, as its policy file selects it.
#[derive(Debug)]
pub enum Backend {
    /// The memory of this process.
    Memory(Box<QuotaRescale<Memory>>),
    /// Redis or Valkey.
    Redis(Box<RedisBackend>),
    /// memcached.
    Memcached(Box<MemcachedBackend>),
    /// Two stores, selected by a percentage of subjects.
    Rollout(Box<RolloutBackend>),
    /// A store, and a second one that is compared with it.
    Shadow(Box<ShadowBackend>),
}

impl Backend {
    /// Opens the store of `settings` for the limits of `policy`; `refunds` names the sources of
    /// refunds.
    ///
    /// `key` hashes subjects; [`hash_key`](crate::hash_key) creates the one that the file
    /// configures. A store in Redis starts to connect and answers calls from the start. It needs a
    /// tokio runtime with a timer and I/O, and closes when it is dropped.
    ///
    /// # Errors
    /// [`OpenError`] for problems that do not go away by waiting: settings without a valid server,
    /// and missing files and variables. A server that does not answer is not an error.
    pub fn open(
        settings: &Settings,
        key: HashKey,
        policy: &Policy,
        refunds: Refunds,
    ) -> Result<Self, OpenError> {
        Self::open_as(ClientRole::ReadWrite, settings, key, policy, refunds)
    }

    /// Does the same as [`open`](Self::open) in the given role, as a node or as an observer.
    ///
    /// # Errors
    /// The same as [`open`](Self::open).
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
                let fleet = MemcachedBackend::open(memcached, key, fallback_store, policy)?;
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

    /// Waits until every shard is connected, for at most [`START_WAIT`](crate::START_WAIT), and
    /// returns their status. A memory store has no shards.
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

    /// Returns the status of the Redis shards in the order of the settings. With two stores, those
    /// of the first store come first.
    #[must_use]
    pub fn status(&self) -> Vec<ShardStatus> {
        self.base_stores().iter().flat_map(|(_, leaf)| leaf.shards()).collect()
    }

    /// Returns the stores that contain the limits: one with an empty name, or two with their keys
    /// in the policy file, such as `from` and `to`.
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

    /// Refunds the unused units of this node's quota leases. Call it before the process ends. Units
    /// that could not be refunded stay used until their window ends.
    pub async fn refund_leases(&self, now: Timestamp) {
        for (_, leaf) in self.base_stores() {
            leaf.refund_leases(now).await;
        }
    }

    /// Applies `policy` and the changeable parts of `settings`. Called before the policy is in
    /// force.
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
            (Self::Memcached(fleet), StoreSettings::Memcached(_)) => fleet.follow(policy),
            _ => {}
        }
    }

    /// Checks that the clocks of this node and of its stores agree as closely as the limits
    /// require.
    ///
    /// # Errors
    /// The difference, and what to do about it.
    pub fn check_clock(&self) -> Result<(), String> {
        self.base_stores().into_iter().try_for_each(|(_, store)| store.check_clock())
    }

    /// Returns the clock by which this store's limits are decided: `clock` while it agrees with the
    /// store's clock, otherwise the store's clock.
    ///
    /// From then on, the store uses its own clock for each call whose time differs too much from
    /// it. Do not use this if callers pass times of their own choice to [`Store::apply`].
    #[must_use]
    pub fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        match self {
            Self::Memory(_) => Arc::new(clock),
            Self::Memcached(fleet) => fleet.clock(clock),
            Self::Redis(fleet) => fleet.clock(clock),
            Self::Rollout(moving) => moving.clock(clock),
            Self::Shadow(compared) => compared.clock(clock),
        }
    }
}

impl AsRef<Self> for Backend {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Store for Backend {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        match self {
            Self::Memory(memory) => memory.apply(now, charges).await,
            // Boxed, because a network store's future would make every call to a memory store
            // larger.
            Self::Redis(fleet) => Box::pin(fleet.apply(now, charges)).await,
            Self::Memcached(fleet) => Box::pin(fleet.apply(now, charges)).await,
            Self::Rollout(moving) => Box::pin(moving.apply(now, charges)).await,
            Self::Shadow(compared) => Box::pin(compared.apply(now, charges)).await,
        }
    }
}
