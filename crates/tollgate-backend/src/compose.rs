//! The composition of a backend: its stores and wrappers, from the servers outwards.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tollgate::HashKey;
use tollgate::model::{CellTransfer, Policy};
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::store::Memory;
use tollgate_policy::{
    MemcachedSettings, MemoryBounds, MigrationStoreSettings, RedisSettings, RolloutSettings,
    Settings, ShadowSettings, ShardSettings, StoreSettings,
};
use tollgate_redis::ClientRole;
use tollgate_stores::deadline::TIMER_GRAIN;
use tollgate_stores::deny_cache::{DEFAULT_DENY_TTL, DenyCacheTtl};
use tollgate_stores::quota_lease::LeaseConfig;
use tollgate_stores::rollout::{DEFAULT_TRANSFER_ENTRIES, DEFAULT_TRANSFER_TIME, OnMove};
use tollgate_stores::sharded::Routing;
use tollgate_stores::{
    Atomic, CallTimer, Deadline, DenyCache, FailoverReplay, Fallback, LocalShare, QuotaLease,
    QuotaRescale, Rebalance, Rollout, Shadow, Sharded,
};

use crate::backend::{
    Backend, Handles, MemcachedBackend, ROLLOUT_REFUNDS, RedisBackend, RolloutBackend, Server,
    ServerStore, ShadowBackend,
};
use crate::settings::endpoints::check_sources;
use crate::settings::{OpenError, Refunds, deny_cache_ttl, memory_bounds};
use crate::shards::{Heartbeats, RedisServers, Shard, ShardMap, ShardStore, Watch, routing};

impl Backend {
    /// Opens the store that `settings` select, for the counters of the limits of `policy`.
    /// `refunds` determines from which sources refunds can come.
    ///
    /// `key` hashes subjects. [`hash_key`](crate::hash_key) creates the key that the policy file
    /// configures. A store in Redis starts to connect, and answers calls even before it is
    /// connected. Such a store needs a tokio runtime with a timer and I/O, and closes its
    /// connections when it is dropped.
    ///
    /// # Errors
    /// [`OpenError`] for problems that persist without a change of the settings or the machine:
    /// settings without a valid server, and missing files and variables. A server that does not
    /// answer is not an error.
    pub fn open(
        settings: &Settings,
        key: HashKey,
        policy: &Policy,
        refunds: Refunds,
    ) -> Result<Self, OpenError> {
        Self::open_as(ClientRole::ReadWrite, settings, key, policy, refunds)
    }

    /// Opens the store like [`open`](Self::open), in the given role: as a node or as an observer.
    ///
    /// # Errors
    /// The same as [`open`](Self::open).
    pub fn open_as(
        role: ClientRole,
        settings: &Settings,
        key: HashKey,
        policy: &Policy,
        refunds: Refunds,
    ) -> Result<Self, OpenError> {
        let terms = Terms { key, policy, refunds, role };
        match &settings.store {
            StoreSettings::Memory(bounds) => Ok(memory(*bounds)),
            StoreSettings::Redis(settings) => redis(settings, &terms),
            StoreSettings::Memcached(settings) => memcached(settings, &terms),
            StoreSettings::Rollout(settings) => rollout(settings, &terms),
            StoreSettings::Shadow(settings) => shadow(settings, &terms),
        }
    }
}

/// The inputs that all stores of one policy file share.
#[derive(Clone)]
struct Terms<'t> {
    key: HashKey,
    policy: &'t Policy,
    refunds: Refunds,
    role: ClientRole,
}

fn memory(bounds: MemoryBounds) -> Backend {
    Backend::Memory(Box::new(QuotaRescale::new(Memory::new(memory_bounds(bounds)))))
}

fn redis(settings: &RedisSettings, terms: &Terms<'_>) -> Result<Backend, OpenError> {
    needs_runtime()?;
    check_sources(settings)?;
    let shards = Arc::new(shard_map(settings, terms)?);
    let watch = Watch::start(Arc::clone(&shards), terms.policy);
    let beat = || {
        let (key, deciding) = (terms.key.clone(), watch.deciding());
        Heartbeats::start(Arc::clone(&shards), key, terms.policy, deciding)
    };
    let heartbeats = match terms.role {
        ClientRole::ReadWrite => Some(beat().map_err(OpenError::Heartbeat)?),
        ClientRole::ReadOnly => None,
    };
    let store = around(
        Arc::clone(shards.store()),
        &Wrapping {
            nodes: settings.nodes,
            deadline: settings.deadline,
            deny_cache_ttl: deny_cache_ttl(settings, terms.policy, terms.refunds),
        },
    );
    let backend = RedisBackend::new(store, shards, watch, heartbeats, settings.clock);
    Ok(Backend::Redis(Box::new(backend)))
}

/// Returns the shards as one store. The store moves subjects if the settings name the previous
/// shards.
fn shard_map(redis: &RedisSettings, terms: &Terms<'_>) -> Result<ShardMap, OpenError> {
    let mut opened = HashMap::<_, Arc<ShardStore>>::new();
    let mut open = |settings: &ShardSettings| {
        let store = match opened.get(&settings.name) {
            Some(store) => Arc::clone(store),
            None => Arc::new(shard(redis, settings, terms)?),
        };
        opened.insert(settings.name.clone(), Arc::clone(&store));
        Ok(Shard { name: settings.name.clone(), weight: settings.weight.get(), store })
    };
    let sharded = |shards: &[Shard], route_by: Option<&str>| {
        let sharded = Sharded::new(terms.key.clone(), shards.iter().map(same));
        Ok(sharded.map_err(OpenError::Shards)?.with_routing(routing(route_by)))
    };
    let after = redis.shards.iter().map(&mut open).collect::<Result<Vec<_>, _>>()?;
    let map = sharded(&after, redis.route_by.as_deref())?;
    let Some(previous) = &redis.previous else {
        return Ok(ShardMap::new(Rebalance::fixed(map), Vec::new()));
    };
    let before = previous.shards.iter().map(&mut open).collect::<Result<Vec<_>, _>>()?;
    let leaves = |shard: &&Shard| after.iter().all(|other| other.name != shard.name);
    let leaving = before.iter().filter(leaves).map(same).collect();
    let rebalance = Rebalance::new(sharded(&before, previous.route_by.as_deref())?, map)
        .with_transfer_entries(DEFAULT_TRANSFER_ENTRIES, redis.deadline);
    Ok(ShardMap::new(rebalance, leaving))
}

fn same(shard: &Shard) -> Shard {
    Shard { name: shard.name.clone(), weight: shard.weight, store: Arc::clone(&shard.store) }
}

fn shard(
    redis: &RedisSettings,
    shard: &ShardSettings,
    terms: &Terms<'_>,
) -> Result<ShardStore, OpenError> {
    let deadline = server_deadline(redis.deadline);
    let servers = RedisServers::open(redis, shard, &terms.key, deadline, terms.role)?;
    let replayed = FailoverReplay::new(servers);
    let exact = Atomic::new(replayed);
    Ok(ShardStore::new(CallTimer::new(exact)))
}

fn memcached(settings: &MemcachedSettings, terms: &Terms<'_>) -> Result<Backend, OpenError> {
    needs_runtime()?;
    let servers = settings.servers.iter().map(|address| server(address, settings, terms));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let sharded = Sharded::new(terms.key.clone(), servers).map_err(OpenError::Shards)?;
    let exact = Arc::new(Atomic::new(sharded));
    let store = around(
        exact,
        &Wrapping {
            nodes: settings.nodes,
            deadline: settings.deadline,
            deny_cache_ttl: DenyCacheTtl::AtMost(DEFAULT_DENY_TTL),
        },
    );
    Ok(Backend::Memcached(Box::new(MemcachedBackend::new(store, terms.policy))))
}

fn server(
    address: &str,
    settings: &MemcachedSettings,
    terms: &Terms<'_>,
) -> Result<Server, OpenError> {
    let deadline = server_deadline(settings.deadline);
    let server = MemcachedBackend::open_server(settings, address, &terms.key, deadline)?;
    Ok(Server { name: address.into(), weight: 1, store: CallTimer::new(server) })
}

fn rollout(settings: &RolloutSettings, terms: &Terms<'_>) -> Result<Backend, OpenError> {
    let terms = Terms { refunds: ROLLOUT_REFUNDS, ..terms.clone() };
    let (from, to) = (side(&settings.from, &terms)?, side(&settings.to, &terms)?);
    let percentage = RolloutPercentage::new(settings.percent);
    let rollout = Rollout::new(&terms.key, percentage, from, to)
        .with_routing(rollout_routing(settings))
        .with_transfer_entries(DEFAULT_TRANSFER_ENTRIES, transfer_time(settings))
        .with_on_move(match settings.on_move {
            tollgate_policy::OnMove::Transfer => OnMove::Transfer,
            tollgate_policy::OnMove::Reset => OnMove::Reset,
        });
    let exact = Atomic::new(rollout);
    Ok(Backend::Rollout(Box::new(RolloutBackend::new(exact, settings.percent))))
}

fn shadow(settings: &ShadowSettings, terms: &Terms<'_>) -> Result<Backend, OpenError> {
    needs_runtime()?;
    let (store, other) = (side(&settings.store, terms)?, side(&settings.compared_with, terms)?);
    let percentage = RolloutPercentage::new(settings.percent);
    let shadow = Shadow::start(&terms.key, percentage, store, other);
    Ok(Backend::Shadow(Box::new(ShadowBackend::new(shadow, settings.percent))))
}

/// Composes one of the two stores of a rollout or of a shadow comparison, with the same wrappers as
/// for a single store.
fn side(settings: &MigrationStoreSettings, terms: &Terms<'_>) -> Result<Backend, OpenError> {
    let terms = Terms { role: ClientRole::ReadWrite, ..terms.clone() };
    match settings {
        MigrationStoreSettings::Memory(bounds) => Ok(memory(*bounds)),
        MigrationStoreSettings::Redis(settings) => redis(settings, &terms),
        MigrationStoreSettings::Memcached(settings) => memcached(settings, &terms),
    }
}

/// The settings of the wrappers around servers.
struct Wrapping {
    nodes: NonZeroU32,
    deadline: Duration,
    deny_cache_ttl: DenyCacheTtl,
}

/// Adds the wrappers around `servers`. From the innermost outwards, the wrappers are quota leases,
/// the deadline, the fallback to this node's share, the deny cache, and the scaling of changed
/// quotas.
fn around<P>(servers: Arc<P>, wrapping: &Wrapping) -> ServerStore<P>
where
    P: CellTransfer + 'static,
{
    let Wrapping { nodes, deadline, deny_cache_ttl } = *wrapping;
    let leases = QuotaLease::new(Arc::clone(&servers), LeaseConfig::for_nodes(nodes));
    let leases = Arc::new(leases);
    let deadline_store = Arc::new(Deadline::new(Arc::clone(&leases)).with_budget(deadline));
    let alone = Memory::new(memory_bounds(MemoryBounds::default()));
    let share = LocalShare::new(alone, nodes);
    let decider = Fallback::new(Arc::clone(&deadline_store), share).with_budget(deadline);
    let decider = Arc::new(decider);
    let refusals = DenyCache::new(Arc::clone(&decider)).with_ttl(deny_cache_ttl);
    let refusals = Arc::new(refusals);
    let store = QuotaRescale::new(Arc::clone(&refusals));
    ServerStore::new(store, Handles { servers, leases, deadline_store, decider, refusals })
}

fn needs_runtime() -> Result<(), OpenError> {
    Handle::try_current().map(drop).map_err(|_| OpenError::NoRuntime)
}

/// Returns the time limit for a server's answer, which is shorter than the `deadline` of a
/// decision. The difference is at least the precision of a timer, so the circuit breaker detects
/// each missed deadline before the whole decision times out.
fn server_deadline(deadline: Duration) -> Duration {
    let left = TIMER_GRAIN.max(deadline / 16);
    deadline.saturating_sub(left).max(deadline / 2)
}

/// Returns the part of a subject that selects its store in a rollout. Subjects that share a shard
/// in Redis share this part, and therefore move together.
fn rollout_routing(settings: &RolloutSettings) -> Routing {
    let sides = [&settings.to, &settings.from];
    let route_by = sides.into_iter().find_map(|side| match side {
        MigrationStoreSettings::Redis(redis) => redis.route_by.as_deref(),
        MigrationStoreSettings::Memory(_) | MigrationStoreSettings::Memcached(_) => None,
    });
    routing(route_by)
}

/// Returns the longest time for a transfer of a client's usage, which is the longer of the two
/// stores' deadlines. If a transfer fails, the client starts with unused limits.
fn transfer_time(settings: &RolloutSettings) -> Duration {
    let deadline = |side: &MigrationStoreSettings| match side {
        MigrationStoreSettings::Memory(_) => DEFAULT_TRANSFER_TIME,
        MigrationStoreSettings::Redis(redis) => redis.deadline,
        MigrationStoreSettings::Memcached(memcached) => memcached.deadline,
    };
    deadline(&settings.from).max(deadline(&settings.to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_has_all_but_a_grain_of_the_deadline() {
        let millis = Duration::from_millis;
        assert_eq!(server_deadline(millis(15)), millis(14));
        assert_eq!(server_deadline(millis(320)), millis(300));
        assert_eq!(server_deadline(millis(1)), Duration::from_micros(500));
    }
}
