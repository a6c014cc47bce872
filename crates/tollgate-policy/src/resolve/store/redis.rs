//! Converts the key `redis` to the settings of the Redis or Valkey store.

use super::super::names::NameTable;
use super::super::secret;
use super::deadline::deadline;
use super::{at_most, previous, revealed, shards, tls};
use crate::decode::{Field, Spanned};
use crate::raw::{PolicyFile, Redis, Subject};
use crate::report::Report;
use crate::settings::{
    DenyCacheMode, MIN_REDIS_DEADLINE, RedisSettings, SentinelAccess, ShardSettings, Topology,
};

/// The largest number of nodes that can share the limits.
const MAX_NODES: u32 = 1_000_000;

/// Returns the settings of the Redis store, or `None` after reporting a mistake.
pub(super) fn settings(
    given: &Spanned<Redis>,
    file: &PolicyFile,
    subjects: &mut NameTable<'_, Subject>,
    report: &mut Report<'_>,
) -> Option<RedisSettings> {
    let redis = &given.value;
    let mut shards = shards::shards(&redis.shards, report);
    let nodes = at_most(&redis.nodes, MAX_NODES, "the number of nodes is", report);
    let deadline = deadline(&redis.deadline, MIN_REDIS_DEADLINE, report);
    let route_by = redis.route_by.given().map(|name| {
        subjects.index(&name.value.0, name.at, report).map(|_| Box::from(&*name.value.0))
    });
    let password = redis
        .password
        .given()
        .map(|password| secret::source(password, "password", "TOLLGATE_REDIS_PASSWORD", report));
    let previous = previous::map(redis, &mut shards, report);
    let servers = shards.as_ref().map(|shards| &shards.named_servers.servers);
    let tls = tls::files(&redis.tls, "server", servers, report);
    let sentinel = sentinel(redis, shards.as_ref(), report);
    Some(RedisSettings {
        shards: shards?.shards,
        route_by: optional(route_by)?,
        previous: optional(previous)?,
        deadline: deadline?,
        nodes: nodes?,
        clock: redis.clock.value().map(|clock| clock.0).unwrap_or_default(),
        reads: redis.reads.value().map(|reads| reads.0).unwrap_or_default(),
        remember_refusals: match redis.deny_cache.value() {
            Some(deny_cache) if !deny_cache.0 => DenyCacheMode::Disabled,
            _ => DenyCacheMode::Enabled,
        },
        step: redis.scripting.value().map(|form| form.0).unwrap_or_default(),
        user: redis.user.value().map(|user| Box::from(&*user.0)),
        password: optional(password)?,
        tls: tls?,
        sentinel: sentinel?,
        revealed: revealed::names(file),
    })
}

/// Returns the value of an optional setting that was converted before. `raw` is `None` if the
/// setting is absent, and `Some(None)` if its mistake is already reported. The function returns
/// `Some(None)` for an absent setting, and `None` for a mistake.
fn optional<T>(raw: Option<Option<T>>) -> Option<Option<T>> {
    match raw {
        None => Some(None),
        Some(right) => right.map(Some),
    }
}

/// Returns the credentials and certificates for the sentinels, or `None` after reporting a mistake.
fn sentinel(
    redis: &Redis,
    shards: Option<&shards::ResolvedShards>,
    report: &mut Report<'_>,
) -> Option<SentinelAccess> {
    let given = match &redis.sentinel {
        Field::Absent => return Some(SentinelAccess::default()),
        Field::Invalid => return None,
        Field::Value(given) => given,
    };
    let is_sentinel = |shard: &ShardSettings| matches!(shard.topology, Topology::Sentinel { .. });
    if shards.is_some_and(|shards| !shards.shards.iter().any(is_sentinel)) {
        let hint = "a shard names them: { sentinels: [\"redis://HOST:26379\"], service: NAME }";
        report.error(given.key, "`sentinel` is set, but no shard has sentinels", hint);
        return None;
    }
    let raw = &given.value;
    let usual = "TOLLGATE_SENTINEL_PASSWORD";
    let password =
        raw.password.given().map(|password| secret::source(password, "password", usual, report));
    let tls = tls::files(
        &raw.tls,
        "sentinel",
        shards.map(|shards| &shards.named_servers.sentinels),
        report,
    );
    Some(SentinelAccess {
        user: raw.user.value().map(|user| Box::from(&*user.0)),
        password: optional(password)?,
        tls: tls?,
    })
}
