//! Lists the shards of a policy with their status.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::json;
use tollgate_backend::{Backend, ClientRole, Refunds, ShardStatus, hash_key};
use tollgate_policy::{LoadedPolicy, RedisSettings, ShardSettings, Topology};
use tollgate_stores::sharded::MapVersion;

use crate::failure::Failure;
use crate::output::{Form, print};
use crate::shards::share::percent;

/// Opens the shards as an observer, waits briefly, and prints the status of each shard.
///
/// # Errors
/// An error if some shards do not serve requests. The error is returned after all shards are
/// printed.
pub(crate) async fn run(
    loaded: &LoadedPolicy,
    redis: &RedisSettings,
    form: Form,
) -> Result<(), Failure> {
    let (key, refunds) = (hash_key(&loaded.settings.key)?, Refunds::ByResponses);
    let (settings, policy) = (&loaded.settings, &loaded.policy);
    let backend = Backend::open_as(ClientRole::ReadOnly, settings, key, policy, refunds)?;
    let shards = backend.started().await;
    let Backend::Redis(fleet) = &backend else {
        return Err("store.redis has no shards".into());
    };
    let version = fleet.map_status().version;
    print(&match form {
        Form::Text => text(redis, &shards, version),
        Form::Json => as_json(redis, &shards, version),
    })?;
    match shards.iter().filter(|shard| !shard.is_served()).count() {
        0 => Ok(()),
        lost => Err(format!("{lost} of {} shards are down", shards.len()).into()),
    }
}

fn text(redis: &RedisSettings, shards: &[ShardStatus], version: MapVersion) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["shard", "topology", "weight", "share", "health", "at"]);
    for shard in shards {
        let (settings, stays) = settings(redis, &shard.name);
        let (weight, share) = match (settings, stays) {
            (Some(settings), true) => (settings.weight.to_string(), share(redis, settings)),
            _ => ("-".to_owned(), "removed".to_owned()),
        };
        let topology = settings.map_or("", |settings| topology(&settings.topology));
        table.add_row([
            &shard.name,
            topology,
            &weight,
            &share,
            health(shard),
            &server_names(shard),
        ]);
    }
    for column in [2, 3] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim()));
    format!("map {version}\n\n{}", lines.collect::<String>())
}

fn as_json(redis: &RedisSettings, shards: &[ShardStatus], version: MapVersion) -> String {
    let shards = shards.iter().map(|shard| {
        let (settings, stays) = settings(redis, &shard.name);
        json!({
            "name": &*shard.name,
            "topology": settings.map(|settings| topology(&settings.topology)),
            "weight": settings.filter(|_| stays).map(|settings| settings.weight),
            "removed": !stays,
            "up": shard.is_served(),
            "primary": shard.primary(),
            "last_error": reason(shard),
        })
    });
    let value = json!({ "map": version.to_string(), "shards": shards.collect::<Vec<_>>() });
    format!("{value:#}\n")
}

/// Returns the settings of the shard called `name`, and whether the shard is in the current map. A
/// shard that is not in the current map has its settings in the previous map. The settings are
/// `None` if neither map contains the shard.
fn settings<'r>(redis: &'r RedisSettings, name: &str) -> (Option<&'r ShardSettings>, bool) {
    let of = |shards: &'r [ShardSettings]| shards.iter().find(|shard| *shard.name == *name);
    match of(&redis.shards) {
        Some(stays) => (Some(stays), true),
        None => (redis.previous.as_ref().and_then(|map| of(&map.shards)), false),
    }
}

/// Returns the shard's share of all subjects.
fn share(redis: &RedisSettings, shard: &ShardSettings) -> String {
    let all: u64 = redis.shards.iter().map(|shard| u64::from(shard.weight.get())).sum();
    percent(shard.weight.get().into(), all)
}

const fn topology(topology: &Topology) -> &'static str {
    match topology {
        Topology::Static { .. } => "static",
        Topology::Sentinel { .. } => "sentinel",
        Topology::Cluster { .. } => "cluster",
    }
}

fn health(shard: &ShardStatus) -> &'static str {
    if shard.is_served() { "up" } else { "DOWN" }
}

fn server_names(shard: &ShardStatus) -> String {
    let primary = shard.primary().map(str::to_owned);
    match (primary, &shard.cluster) {
        (Some(at), None) => at,
        (Some(at), Some(cluster)) if cluster.unowned == 0 => {
            format!("{at} and others, {} primaries", cluster.groups.len())
        }
        (Some(at), Some(cluster)) => format!("{at}; {} slots have no node", cluster.unowned),
        (None, _) => reason(shard).unwrap_or_else(|| "no answer yet".to_owned()),
    }
}

fn reason(shard: &ShardStatus) -> Option<String> {
    let of_batchers = || shard.batchers.first()?.last_error.as_ref().map(ToString::to_string);
    let of_cluster = || shard.cluster.as_ref()?.last_error.as_ref().map(ToString::to_string);
    of_cluster().or_else(of_batchers)
}
