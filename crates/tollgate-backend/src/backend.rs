//! The store that a policy file selects.

mod local_charging;
mod memcached;
mod redis;
mod rollout;
mod server_store;
mod shadow;
mod store_clock;
mod written_percent;

use std::pin::Pin;
use std::sync::Arc;

use tollgate::Clock;
use tollgate::model::{
    Cell, CellKey, CellTransfer, Charge, Policy, Readings, Store, StoreError, Timestamp,
};
use tollgate::store::Memory;
use tollgate_policy::StoreSettings;
use tollgate_stores::QuotaRescale;

use crate::settings::Refunds;
use crate::status::{Counts, MapStatus, MemcachedStatus, ShardStatus};

pub use memcached::MemcachedBackend;
pub(crate) use memcached::Server;
pub use redis::RedisBackend;
pub use rollout::RolloutBackend;
pub(crate) use server_store::{Handles, ServerStore};
pub use shadow::ShadowBackend;
pub use store_clock::StoreClock;

/// The store that a policy file selects for the counters of its limits: the memory of this process,
/// servers, or a combination of two such stores.
#[derive(Debug)]
pub enum Backend {
    /// The counters are in the memory of this process.
    Memory(Box<QuotaRescale<Memory>>),
    /// The counters are in shards of Redis or Valkey.
    Redis(Box<RedisBackend>),
    /// The counters are on memcached servers.
    Memcached(Box<MemcachedBackend>),
    /// Two stores. One store decides for a percentage of the subjects, and the other store decides
    /// for the rest.
    Rollout(Box<RolloutBackend<Self>>),
    /// A store that decides, and a second store that is compared with the first.
    Shadow(Box<ShadowBackend<Self>>),
}

impl Backend {
    /// Returns both stores if this store consists of two stores, with their keys in the policy
    /// file, such as `from` and `to`. Returns `None` for a single store.
    fn sides(&self) -> Option<[(&'static str, &Self); 2]> {
        match self {
            Self::Memory(_) | Self::Redis(_) | Self::Memcached(_) => None,
            Self::Rollout(moving) => Some([("from", moving.from()), ("to", moving.to())]),
            Self::Shadow(compared) => {
                Some([("store", compared.store()), ("shadow_store", compared.shadow_store())])
            }
        }
    }

    /// Returns the stores that keep counters themselves. A single store is returned with an empty
    /// name. If this store consists of two stores, both are returned with their keys in the policy
    /// file.
    #[must_use]
    pub fn base_stores(&self) -> Vec<(&'static str, &Self)> {
        self.sides().map_or_else(|| vec![("", self)], Vec::from)
    }

    /// Returns the stores that decide: all base stores except a shadow store.
    pub(crate) fn deciding(&self) -> Vec<&Self> {
        match self {
            Self::Shadow(compared) => vec![compared.store()],
            _ => self.base_stores().into_iter().map(|(_, store)| store).collect(),
        }
    }

    /// Returns the name of this type of store in the policy file.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Redis(_) => "redis",
            Self::Memcached(_) => "memcached",
            Self::Rollout(_) => "rollout",
            Self::Shadow(_) => "shadow",
        }
    }

    /// Returns the memory store, or `None` if the counters are not in this process.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        match self {
            Self::Memory(memory) => Some(memory.store()),
            _ => None,
        }
    }

    /// Waits for at most [`START_WAIT`](crate::START_WAIT) until every shard is connected, and
    /// returns the status of the shards. A memory store has no shards.
    pub async fn started(&self) -> Vec<ShardStatus> {
        // All servers connect concurrently, so the total wait is not longer than the wait for one
        // server.
        for (_, store) in self.base_stores() {
            match store {
                Self::Redis(redis) => redis.started().await,
                Self::Memcached(memcached) => memcached.started().await,
                _ => {}
            }
        }
        self.status()
    }

    /// Returns the status of the Redis shards in the order of the settings. With two stores, the
    /// shards of the first store come first.
    #[must_use]
    pub fn status(&self) -> Vec<ShardStatus> {
        match self {
            Self::Redis(redis) => redis.status(),
            Self::Memory(_) | Self::Memcached(_) => Vec::new(),
            _ => self.base_stores().iter().flat_map(|(_, store)| store.status()).collect(),
        }
    }

    /// Returns the status of the memcached servers. The list is empty if the counters are not in
    /// memcached.
    #[must_use]
    pub fn servers(&self) -> Vec<MemcachedStatus> {
        match self {
            Self::Memcached(memcached) => memcached.status(),
            _ => Vec::new(),
        }
    }

    /// Returns the counts of decisions that were made without the servers, or `None` if the
    /// counters are not on servers.
    #[must_use]
    pub fn counts(&self) -> Option<Counts> {
        match self {
            Self::Redis(redis) => Some(redis.counts()),
            Self::Memcached(memcached) => Some(memcached.counts()),
            _ => None,
        }
    }

    /// Returns the status of the shard map, or `None` if the store has no shard map that can
    /// change.
    #[must_use]
    pub fn map_status(&self) -> Option<MapStatus> {
        match self {
            Self::Redis(redis) => Some(redis.map_status()),
            _ => None,
        }
    }

    /// Refunds the unused units of this node's quota leases. Call this function before the process
    /// ends. Units that could not be refunded stay used until their window ends.
    pub async fn refund_leases(&self, now: Timestamp) {
        for (_, store) in self.base_stores() {
            match store {
                Self::Redis(redis) => redis.refund_leases(now).await,
                Self::Memcached(memcached) => memcached.refund_leases(now).await,
                // No other node shares a memory store.
                _ => {}
            }
        }
    }

    /// Applies `policy` and the settings in `settings` that can change without a restart. `refunds`
    /// determines from which sources refunds can come. Called before the policy is in force.
    pub(crate) fn follow(&self, settings: &StoreSettings, policy: &Policy, refunds: Refunds) {
        match (self, settings) {
            (Self::Redis(redis), StoreSettings::Redis(settings)) => {
                redis.follow(settings, policy, refunds);
            }
            (Self::Memcached(memcached), StoreSettings::Memcached(_)) => memcached.follow(policy),
            (Self::Rollout(moving), StoreSettings::Rollout(settings)) => {
                moving.from().follow(&settings.from.clone().into(), policy, ROLLOUT_REFUNDS);
                moving.to().follow(&settings.to.clone().into(), policy, ROLLOUT_REFUNDS);
                moving.follow(settings.percent);
            }
            (Self::Shadow(compared), StoreSettings::Shadow(settings)) => {
                compared.store().follow(&settings.store.clone().into(), policy, refunds);
                let other = settings.compared_with.clone().into();
                compared.shadow_store().follow(&other, policy, refunds);
                compared.follow(settings.percent);
            }
            _ => {}
        }
    }

    /// Checks that the clocks of this node and of its stores agree as closely as the limits
    /// require.
    ///
    /// # Errors
    /// The difference of the clocks, with advice to the operator.
    pub fn check_clock(&self) -> Result<(), String> {
        self.base_stores().into_iter().try_for_each(|(_, store)| match store {
            Self::Redis(redis) => redis.check_clock(),
            Self::Memcached(memcached) => memcached.check_clock(),
            // A memory store has no clock of its own.
            _ => Ok(()),
        })
    }

    /// Returns the clock that decides this store's limits. If `clock` and the store's clock agree,
    /// the returned clock shows the time of `clock`. If they differ too much, the returned clock
    /// shows the time of the store's clock.
    ///
    /// After this call, the store uses its own clock for each call with a time that differs too
    /// much from the store's clock. Do not call this function if callers pass times of their own
    /// choice to [`Store::apply`].
    #[must_use]
    pub fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        // The second store also compares the first store's clock with its own clock.
        let (first, second) = match self {
            Self::Memory(_) => return Arc::new(clock),
            Self::Memcached(memcached) => return memcached.clock(clock),
            Self::Redis(redis) => return redis.clock(clock),
            Self::Rollout(moving) => (moving.to(), moving.from()),
            Self::Shadow(compared) => (compared.store(), compared.shadow_store()),
        };
        let clock: Arc<dyn Clock> = Arc::new(clock);
        let clock = first.clock(clock);
        let _ = second.clock(Arc::clone(&clock));
        clock
    }
}

/// The sources of refunds that the deny caches of a rollout's stores must expect. A call may span
/// both stores, and a charge in one store is refunded if the other store refuses. The deny caches
/// therefore keep refusals only briefly, as if refunds came by receipt.
pub(crate) const ROLLOUT_REFUNDS: Refunds = Refunds::ByReceipts;

impl AsRef<Self> for Backend {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The future of a store in another process, or of two stores. The future is boxed for two reasons:
/// without the box, every call to a memory store would have a larger future, and the future of a
/// store of two stores contains futures of this type.
type Remote<'f, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'f>>;

// The return types are explicit, because the compiler must know that these futures are `Send`
// before it has processed the futures of the two stores that a store of this type can contain.
#[expect(clippy::manual_async_fn, reason = "an async fn would not be known to be `Send`")]
impl Store for Backend {
    fn apply(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> impl Future<Output = Result<Readings, StoreError>> + Send {
        async move {
            let remote: Remote<'_, _> = match self {
                Self::Memory(memory) => return memory.apply(now, charges).await,
                Self::Redis(redis) => Box::pin(redis.store().apply(now, charges)),
                Self::Memcached(memcached) => Box::pin(memcached.store().apply(now, charges)),
                Self::Rollout(moving) => Box::pin(moving.store().apply(now, charges)),
                Self::Shadow(compared) => Box::pin(compared.both().apply(now, charges)),
            };
            remote.await
        }
    }

    fn apply_at_once(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Option<Result<Readings, StoreError>> {
        match self {
            Self::Memory(memory) => memory.apply_at_once(now, charges),
            Self::Redis(_) | Self::Memcached(_) | Self::Rollout(_) | Self::Shadow(_) => None,
        }
    }
}

#[expect(clippy::manual_async_fn, reason = "an async fn would not be known to be `Send`")]
impl CellTransfer for Backend {
    fn cells(
        &self,
        now: Timestamp,
        cell_keys: &[CellKey<'_>],
    ) -> impl Future<Output = Result<Vec<Option<Cell>>, StoreError>> + Send {
        async move {
            let remote: Remote<'_, _> = match self {
                Self::Memory(memory) => return memory.cells(now, cell_keys).await,
                Self::Redis(redis) => Box::pin(redis.store().cells(now, cell_keys)),
                Self::Memcached(memcached) => Box::pin(memcached.store().cells(now, cell_keys)),
                Self::Rollout(moving) => Box::pin(moving.store().cells(now, cell_keys)),
                Self::Shadow(compared) => Box::pin(compared.store().cells(now, cell_keys)),
            };
            remote.await
        }
    }

    fn join(
        &self,
        now: Timestamp,
        cells: &[(CellKey<'_>, Cell)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move {
            let remote: Remote<'_, _> = match self {
                Self::Memory(memory) => return memory.join(now, cells).await,
                Self::Redis(redis) => Box::pin(redis.store().join(now, cells)),
                Self::Memcached(memcached) => Box::pin(memcached.store().join(now, cells)),
                Self::Rollout(moving) => Box::pin(moving.store().join(now, cells)),
                Self::Shadow(compared) => Box::pin(compared.store().join(now, cells)),
            };
            remote.await
        }
    }
}
