//! How the shards stand among each other.

use tollgate_backend::{Info, Inspected, Role, ShardStatus};
use tollgate_policy::{RedisSettings, ShardSettings, Topology};
use tollgate_redis::StepRuntime;

use super::{Finding, Level};

/// Keys below which a shard's share says nothing.
const ENOUGH_KEYS: u64 = 10_000;

/// How far a shard's part of all keys may be from its share, in hundredths of the share.
const UNEVEN: u64 = 25;

/// Sentinels that agree on a primary's death although one of them is dead, too.
const ENOUGH_SENTINELS: usize = 3;

pub(in crate::doctor) fn of_shards(
    redis: &RedisSettings,
    shards: &[ShardStatus],
    inspected: &[Inspected],
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for settings in &redis.shards {
        let status = shards.iter().find(|status| status.name == settings.name);
        let of_one = [status.map(served), status.and_then(step), sentinels(settings)];
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
        Some(reason) => format!("nobody decides for its subjects: {reason}"),
        None if unowned > 0 => format!("{unowned} of its 16384 slots have no node"),
        None => "nobody decides for its subjects: it has not answered yet".to_owned(),
    };
    Finding::of(
        CHECK,
        Level::Problem,
        what,
        "tollgate shards --policy FILE tells how each server stands",
    )
}

/// Whether the step runs as it could, or will once a node gives it to the server.
fn step(status: &ShardStatus) -> Option<Finding> {
    const CHECK: &str = "scripting";
    status.primary()?;
    Some(match status.runs {
        StepRuntime::Function => Finding::ok(CHECK, "decisions run as a function of the server"),
        StepRuntime::Script => Finding::of(
            CHECK,
            Level::Advice,
            "decisions run as a script, which a server forgets when it restarts, and which costs more",
            "Redis 7 and Valkey have functions: let the user +fcall and +function|load",
        ),
    })
}

fn sentinels(settings: &ShardSettings) -> Option<Finding> {
    const CHECK: &str = "sentinels";
    let Topology::Sentinel { sentinels, .. } = &settings.topology else { return None };
    let count = sentinels.len();
    if count >= ENOUGH_SENTINELS {
        return Some(Finding::ok(CHECK, format!("{count} are named")));
    }
    Some(Finding::of(
        CHECK,
        Level::Advice,
        format!("{count} named: with fewer than three, losing one can stop failovers"),
        "run three or more on machines of their own, and name all of them",
    ))
}

/// Whether each shard has about as many keys as its weight says.
fn balance(redis: &RedisSettings, inspected: &[Inspected]) -> Option<Finding> {
    const CHECK: &str = "balance";
    let keys: Vec<u64> = redis.shards.iter().map(|shard| keys(shard, inspected)).collect();
    let all: u64 = keys.iter().sum();
    let weights: u64 = redis.shards.iter().map(|shard| u64::from(shard.weight.get())).sum();
    if redis.shards.len() < 2 {
        return None;
    }
    if all < ENOUGH_KEYS {
        return Some(Finding::ok(CHECK, format!("too few keys to tell ({all})")));
    }
    let uneven = redis.shards.iter().zip(&keys).find_map(|(shard, keys)| {
        let fair = all.saturating_mul(u64::from(shard.weight.get())) / weights.max(1);
        let apart = keys.abs_diff(fair);
        (apart.saturating_mul(100) > fair.saturating_mul(UNEVEN))
            .then(|| format!("{} has {keys} of {all} keys; its share would be {fair}", shard.name))
    });
    Some(match uneven {
        None => Finding::ok(CHECK, format!("{all} keys, each shard near its share")),
        Some(what) => Finding::of(
            CHECK,
            Level::Advice,
            what,
            "see whether others write there, or one value of store.redis.route_by has many keys",
        ),
    })
}

/// The keys of a shard's primaries.
fn keys(shard: &ShardSettings, inspected: &[Inspected]) -> u64 {
    let primaries = inspected
        .iter()
        .filter(|server| server.shard == shard.name && server.role == Role::DataServer)
        .filter_map(|server| server.told.as_ref().ok()?.info.as_ref())
        .filter(|info| info.field("role") == Some("master"));
    primaries.map(keys_of).sum()
}

fn keys_of(info: &Info) -> u64 {
    let databases = info.fields("db");
    databases
        .filter_map(|(_, value)| tollgate_backend::part(value, "keys")?.parse::<u64>().ok())
        .sum()
}
