//! One of two stores.

use std::sync::Arc;

use tollgate::model::{
    Cell, CellKey, CellTransfer, Charge, Policy, Readings, Store, StoreError, Timestamp,
};
use tollgate::store::Memory;
use tollgate::{Clock, HashKey};
use tollgate_policy::{MemoryBounds, MigrationStoreSettings};
use tollgate_redis::ClientRole;
use tollgate_stores::QuotaRescale;

use crate::base_store::BaseStore;
use crate::deny_cache_ttl::Refunds;
use crate::error::OpenError;
use crate::memcached_backend::MemcachedBackend;
use crate::memory_bounds::memory_bounds;
use crate::redis_backend::RedisBackend;

/// One of the two stores of a rollout or of a shadow comparison, with all wrappers that it has when
/// used alone.
#[derive(Debug)]
pub enum MigrationStore {
    /// The memory of this process.
    Memory(Box<QuotaRescale<Memory>>),
    /// Redis or Valkey.
    Redis(Box<RedisBackend>),
    /// memcached.
    Memcached(Box<MemcachedBackend>),
}

impl MigrationStore {
    pub(crate) fn open(
        settings: &MigrationStoreSettings,
        key: HashKey,
        policy: &Policy,
        refunds: Refunds,
    ) -> Result<Self, OpenError> {
        let fallback_store = memory_bounds(MemoryBounds::default());
        Ok(match settings {
            MigrationStoreSettings::Memory(bounds) => {
                Self::Memory(Box::new(QuotaRescale::new(Memory::new(memory_bounds(*bounds)))))
            }
            MigrationStoreSettings::Redis(redis) => Self::Redis(Box::new(RedisBackend::open(
                redis,
                key,
                policy,
                fallback_store,
                refunds,
                ClientRole::ReadWrite,
            )?)),
            MigrationStoreSettings::Memcached(memcached) => {
                let fleet = MemcachedBackend::open(memcached, key, fallback_store, policy)?;
                Self::Memcached(Box::new(fleet))
            }
        })
    }

    /// Returns the store itself, to query its status.
    #[must_use]
    pub fn base_store(&self) -> BaseStore<'_> {
        match self {
            Self::Memory(memory) => BaseStore::Memory(memory.store()),
            Self::Redis(fleet) => BaseStore::Redis(fleet),
            Self::Memcached(fleet) => BaseStore::Memcached(fleet),
        }
    }

    pub(crate) async fn started(&self) {
        match self {
            Self::Memory(_) => {}
            Self::Redis(fleet) => drop(fleet.started().await),
            Self::Memcached(fleet) => fleet.started().await,
        }
    }

    pub(crate) fn follow(
        &self,
        settings: &MigrationStoreSettings,
        policy: &Policy,
        refunds: Refunds,
    ) {
        match (self, settings) {
            (Self::Redis(fleet), MigrationStoreSettings::Redis(redis)) => {
                fleet.follow(redis, policy, refunds);
            }
            (Self::Memcached(fleet), _) => fleet.follow(policy),
            _ => {}
        }
    }

    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        match self {
            Self::Memory(_) => Arc::new(clock),
            Self::Memcached(fleet) => fleet.clock(clock),
            Self::Redis(fleet) => fleet.clock(clock),
        }
    }
}

impl Store for MigrationStore {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        match self {
            Self::Memory(memory) => memory.apply(now, charges).await,
            // Boxed, because a network store's future would make every call to a memory store
            // larger.
            Self::Redis(fleet) => Box::pin(fleet.apply(now, charges)).await,
            Self::Memcached(fleet) => Box::pin(fleet.apply(now, charges)).await,
        }
    }
}

impl CellTransfer for MigrationStore {
    async fn cells(
        &self,
        now: Timestamp,
        places: &[CellKey<'_>],
    ) -> Result<Vec<Option<Cell>>, StoreError> {
        match self {
            Self::Memory(memory) => memory.cells(now, places).await,
            Self::Redis(fleet) => Box::pin(fleet.cells(now, places)).await,
            Self::Memcached(fleet) => Box::pin(fleet.cells(now, places)).await,
        }
    }

    async fn join(&self, now: Timestamp, cells: &[(CellKey<'_>, Cell)]) -> Result<(), StoreError> {
        match self {
            Self::Memory(memory) => memory.join(now, cells).await,
            Self::Redis(fleet) => Box::pin(fleet.join(now, cells)).await,
            Self::Memcached(fleet) => Box::pin(fleet.join(now, cells)).await,
        }
    }
}
