//! Creates a limiter from a policy file.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;
use tollgate::Limiter;
use tollgate_backend::{Backend, Refunds};
use tollgate_policy::{
    LoadedPolicy, MemcachedSettings, MigrationStoreSettings, RedisSettings, RolloutSettings,
    ShadowSettings, StoreSettings,
};

use crate::failure::Failure;
use crate::log;

/// The time limit for the work that remains after the last responses, such as refunds and late
/// charges. The store's own deadlines are shorter.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// Loads the policy at `path` and prints its warnings.
pub(crate) fn load(path: &Path) -> Result<LoadedPolicy, Failure> {
    let loaded = tollgate_policy::load(path)?;
    for warning in &loaded.warnings {
        log::warn(warning);
    }
    Ok(loaded)
}

/// Creates a limiter with the store of `loaded`, and waits a short time until the store is
/// connected. The store logs whether the connections succeed. The limiter makes decisions even if
/// they fail.
pub(crate) async fn open(
    loaded: LoadedPolicy,
    refunds: Refunds,
) -> Result<Limiter<Backend>, Failure> {
    let limiter = tollgate_backend::limiter(loaded, refunds)?;
    limiter.store().started().await;
    Ok(limiter)
}

/// Waits for the work that continues after the last connection has ended, at most for
/// [`FINISH_TIMEOUT`]: refunds, charges, releases of permits, and changes of administrators. Then
/// refunds the units that this node has leased.
pub(crate) async fn finish(limiter: &Limiter<Backend>) {
    if timeout(FINISH_TIMEOUT, limiter.finished()).await.is_err() {
        log::warn(
            &"the store did not answer some refunds, charges or changes of the last requests",
        );
    }
    limiter.store().refund_leases(limiter.now()).await;
}

/// Describes the store in a few words.
pub(crate) fn store(settings: &StoreSettings) -> impl fmt::Display {
    fmt::from_fn(move |f| match settings {
        StoreSettings::Memory(_) => f.write_str(IN_PROCESS),
        StoreSettings::Redis(redis) => f.write_str(&in_redis(redis)),
        StoreSettings::Memcached(memcached) => f.write_str(&in_memcached(memcached)),
        StoreSettings::Rollout(rollout) => {
            let RolloutSettings { percent, from, to, .. } = &**rollout;
            write!(f, "{}, {percent} of clients moved to {}", side(from), side(to))
        }
        StoreSettings::Shadow(shadow) => {
            let ShadowSettings { percent, store, compared_with } = &**shadow;
            let (store, other) = (side(store), side(compared_with));
            write!(f, "{store}, {percent} of clients compared with {other}")
        }
    })
}

const IN_PROCESS: &str = "counters in memory";

fn side(side: &MigrationStoreSettings) -> String {
    match side {
        MigrationStoreSettings::Memory(_) => IN_PROCESS.to_owned(),
        MigrationStoreSettings::Redis(redis) => in_redis(redis),
        MigrationStoreSettings::Memcached(memcached) => in_memcached(memcached),
    }
}

fn in_redis(redis: &RedisSettings) -> String {
    let many = if redis.shards.len() == 1 { "shard" } else { "shards" };
    format!("counters in {} {many} of Redis", redis.shards.len())
}

fn in_memcached(memcached: &MemcachedSettings) -> String {
    let many = if memcached.servers.len() == 1 { "server" } else { "servers" };
    format!("counters in {} {many} of memcached", memcached.servers.len())
}
