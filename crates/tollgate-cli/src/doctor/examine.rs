//! Examines every store of the policy.

use std::time::Duration;

use tollgate::{Clock, SystemClock};
use tollgate_backend::{Backend, ClientRole, Refunds, hash_key, inspect};
use tollgate_policy::{
    KeySource, LoadedPolicy, MemcachedSettings, MigrationStoreSettings, RedisSettings, Settings,
    StoreSettings,
};

use super::{Finding, Level, checks, memcached};
use crate::failure::Failure;

/// The longest time that one server has to respond.
pub(super) const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Examines the store of `loaded`, or both stores of a rollout or shadow store one after the other.
///
/// # Errors
/// Errors that waiting does not solve, such as missing files.
pub(super) async fn store(loaded: &LoadedPolicy) -> Result<Vec<Finding>, Failure> {
    let mut findings = vec![secret(&loaded.settings)];
    let (one, other) = match loaded.settings.store.clone() {
        StoreSettings::Memory(bounds) => (MigrationStoreSettings::Memory(bounds), None),
        StoreSettings::Redis(redis) => (MigrationStoreSettings::Redis(redis), None),
        StoreSettings::Memcached(memcached) => (MigrationStoreSettings::Memcached(memcached), None),
        StoreSettings::Rollout(rollout) => (rollout.from, Some(rollout.to)),
        StoreSettings::Shadow(shadow) => (shadow.store, Some(shadow.compared_with)),
    };
    for side in std::iter::once(one).chain(other) {
        match side {
            MigrationStoreSettings::Memory(_) => findings.push(in_memory()),
            MigrationStoreSettings::Redis(redis) => {
                findings.extend(of_redis(loaded, &redis).await?);
            }
            MigrationStoreSettings::Memcached(memcached) => {
                findings.extend(of_memcached(&memcached).await);
            }
        }
    }
    Ok(findings)
}

/// Checks whether nodes that share a store use the same key for subjects.
fn secret(settings: &Settings) -> Finding {
    const CHECK: &str = "secret";
    let is_shared = !matches!(settings.store, StoreSettings::Memory(_));
    let finding = match &settings.key {
        KeySource::Random if is_shared => Finding::of(
            CHECK,
            Level::Problem,
            "without `secret`, every process generates its own key for subjects: each node counts separately",
            "set one that all nodes share: secret: { file: PATH } or secret: { env: NAME }",
        ),
        KeySource::Random => {
            Finding::ok(CHECK, "random, which is sufficient for counters in memory")
        }
        KeySource::Environment { name } => Finding::ok(CHECK, format!("from the variable {name}")),
        KeySource::File { path } => Finding::ok(CHECK, format!("from {}", path.display())),
    };
    finding.about("policy")
}

fn in_memory() -> Finding {
    let what = "counters are in the memory of each process: no server to check, and they end with the process";
    Finding::ok("store", what).about("memory")
}

async fn of_redis(loaded: &LoadedPolicy, redis: &RedisSettings) -> Result<Vec<Finding>, Failure> {
    // The settings open the store as an observer, which is not a node: no node waits for an
    // observer or counts it.
    let settings = Settings {
        store: StoreSettings::Redis(Box::new(redis.clone())),
        ..loaded.settings.clone()
    };
    let key = hash_key(&settings.key)?;
    let policy = &loaded.policy;
    let backend =
        Backend::open_as(ClientRole::ReadOnly, &settings, key, policy, Refunds::ByResponses)?;
    let shards = backend.started().await;
    let now = SystemClock.now();
    let inspected = inspect(redis, &shards, QUERY_TIMEOUT).await?;
    let mut findings = checks::of_shards(redis, &shards, &inspected);
    for server in &inspected {
        findings.extend(checks::of_server(server, now));
        findings.extend(checks::of_deadline(server, redis.deadline));
    }
    Ok(findings)
}

async fn of_memcached(settings: &MemcachedSettings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for server in &settings.servers {
        let message = memcached::stats(server, QUERY_TIMEOUT).await;
        findings.extend(checks::of_memcached(server, message.as_ref()));
    }
    findings
}
