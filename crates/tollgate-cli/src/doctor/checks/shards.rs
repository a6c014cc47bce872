//! Compares the shards with each other.

use tollgate_backend::{Info, Inspected, Role, ShardStatus};
use tollgate_policy::{RedisSettings, ShardSettings, StepForm, Topology};

use super::{Finding, Level, scripting};

/// The number of keys below which a shard's share is not significant.
const ENOUGH_KEYS: u64 = 10_000;

/// The tolerated difference between a shard's share of all keys and its weight, in percent of the
/// weight.
const UNEVEN: u64 = 25;

/// The least number of sentinels with which one sentinel may be down, because the other sentinels
/// are still enough to agree on the failure of a primary.
const ENOUGH_SENTINELS: usize = 3;

pub(in crate::doctor) fn of_shards(
    redis: &RedisSettings,
    shards: &[ShardStatus],
    inspected: &[Inspected],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for settings in &redis.shards {
        let status = shards.iter().find(|status| status.name == settings.name);
        let of_one = [
            status.map(served),
            split(settings, status, inspected),
            module(redis, settings, inspected),
            status.and_then(|status| {
                scripting::check(redis, settings, status, inspected, keys(settings, inspected))
            }),
            sentinels(settings),
        ];
        let about = |finding: Finding| finding.about(&settings.name);
        findings.extend(of_one.into_iter().flatten().map(about));
    }
    findings.extend(balance(redis, inspected).map(|finding| finding.about("shards")));
    findings
}

fn served(status: &ShardStatus) -> Finding {
    const CHECK: &str = "serves";
    if status.is_served() {
        return Finding::ok(CHECK, format!("at {}", status.primary().unwrap_or("its nodes")));
    }
    let unowned = status.cluster.as_ref().map_or(0, |cluster| cluster.unowned);
    let reason = status.batchers.first().and_then(|batcher| batcher.last_error.as_ref());
    let what = match reason {
        Some(reason) => format!("it does not decide for its subjects: {reason}"),
        None if unowned > 0 => format!("{unowned} of its 16384 slots have no node"),
        None => "it does not decide for its subjects: no answer yet".to_owned(),
    };
    Finding::of(
        CHECK,
        Level::Problem,
        what,
        "run tollgate shards --policy FILE for the status of each server",
    )
}

/// Reports several primaries of one shard: an old primary that returned after a manual failover, or
/// replication that was never set up. Returns `None` if the check does not apply to the shard.
fn split(
    settings: &ShardSettings,
    status: Option<&ShardStatus>,
    inspected: &[Inspected],
) -> Option<Finding> {
    const CHECK: &str = "split";
    if matches!(settings.topology, Topology::Cluster { .. }) {
        return None;
    }
    let of_shard = inspected
        .iter()
        .filter(|server| server.shard == settings.name && server.role == Role::DataServer);
    let primaries: Vec<_> = of_shard
        .filter(|server| {
            let info = server.report.as_ref().ok().and_then(|report| report.info.as_ref());
            info.is_some_and(|info| info.field("role") == Some("master"))
        })
        .map(|server| server.address.to_string())
        .collect();
    if primaries.len() < 2 {
        return None;
    }
    let chosen = status.and_then(ShardStatus::primary).unwrap_or("the one that has the counters");
    Some(Finding::of(
        CHECK,
        Level::Problem,
        format!("{} are all primaries; nodes charge {chosen}", primaries.join(", ")),
        format!("make the others its replicas: REPLICAOF with the host and port of {chosen}"),
    ))
}

/// If the shard keeps its counters in tables, checks that every server of the shard has the module.
/// A replica without the module would lose the tables. Returns `None` if the check does not apply
/// to the shard.
fn module(
    redis: &RedisSettings,
    settings: &ShardSettings,
    inspected: &[Inspected],
) -> Option<Finding> {
    const CHECK: &str = "module";
    if redis.step != StepForm::Tables || matches!(settings.topology, Topology::Cluster { .. }) {
        return None;
    }
    let without: Vec<_> = inspected
        .iter()
        .filter(|server| server.shard == settings.name && server.role == Role::DataServer)
        .filter(|server| {
            let info = server.report.as_ref().ok().and_then(|report| report.info.as_ref());
            info.is_some_and(|info| !scripting::has_module(info))
        })
        .map(|server| server.address.to_string())
        .collect();
    if without.is_empty() {
        return Some(Finding::ok(CHECK, "loaded on every server that answered"));
    }
    let (subject, verb) = (without.join(", "), if without.len() == 1 { "does" } else { "do" });
    Some(Finding::of(
        CHECK,
        Level::Problem,
        format!("{subject} {verb} not have it, and would lose the contents of tables"),
        "load it there (`loadmodule PATH` in the server's configuration), or use `scripting: auto`",
    ))
}

fn sentinels(settings: &ShardSettings) -> Option<Finding> {
    const CHECK: &str = "sentinels";
    let Topology::Sentinel { sentinels, .. } = &settings.topology else { return None };
    let count = sentinels.len();
    if count >= ENOUGH_SENTINELS {
        return Some(Finding::ok(CHECK, format!("{count} are listed")));
    }
    Some(Finding::of(
        CHECK,
        Level::Advice,
        format!("{count} listed: with fewer than three, losing one can prevent failovers"),
        "run three or more on separate machines, and list all of them",
    ))
}

/// Checks that the number of keys of each shard corresponds to its weight. Returns `None` if there
/// is only one shard.
fn balance(redis: &RedisSettings, inspected: &[Inspected]) -> Option<Finding> {
    const CHECK: &str = "balance";
    let keys: Vec<u64> = redis.shards.iter().map(|shard| keys(shard, inspected)).collect();
    let all: u64 = keys.iter().sum();
    let weights: u64 = redis.shards.iter().map(|shard| u64::from(shard.weight.get())).sum();
    if redis.shards.len() < 2 {
        return None;
    }
    if all < ENOUGH_KEYS {
        return Some(Finding::ok(CHECK, format!("too few keys for a comparison ({all})")));
    }
    let uneven = redis.shards.iter().zip(&keys).find_map(|(shard, keys)| {
        let fair = all.saturating_mul(u64::from(shard.weight.get())) / weights.max(1);
        let apart = keys.abs_diff(fair);
        (apart.saturating_mul(100) > fair.saturating_mul(UNEVEN)).then(|| {
            format!("{} has {keys} of {all} keys; by its weight it should have {fair}", shard.name)
        })
    });
    Some(match uneven {
        None => Finding::ok(CHECK, format!("{all} keys, each shard near its share")),
        Some(what) => Finding::of(
            CHECK,
            Level::Advice,
            what,
            "check whether other programs write there, or whether one value of store.redis.route_by has many keys",
        ),
    })
}

/// Returns the number of keys on the primaries of a shard.
fn keys(shard: &ShardSettings, inspected: &[Inspected]) -> u64 {
    let primaries = inspected
        .iter()
        .filter(|server| server.shard == shard.name && server.role == Role::DataServer)
        .filter_map(|server| server.report.as_ref().ok()?.info.as_ref())
        .filter(|info| info.field("role") == Some("master"));
    primaries.map(keys_of).sum()
}

fn keys_of(info: &Info) -> u64 {
    let databases = info.fields("db");
    databases
        .filter_map(|(_, value)| tollgate_backend::part(value, "keys")?.parse::<u64>().ok())
        .sum()
}
