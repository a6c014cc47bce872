//! Generates the policy files of the nodes.

use std::fmt::Write as _;

use crate::plan::{Defect, Plan, ServerAddress, StoreKind, Version, sentinel_name, shard_name};

/// Returns the text of the policy file for a version of the policy.
pub(crate) fn text(plan: &Plan, version: &Version) -> String {
    let (short, long) = version.quotas;
    let window = version.window;
    let mode = if version.is_leased { ", mode: leased" } else { "" };
    let (third, also) = if version.has_third_limit {
        ("  third: { quota: 1000000, window: 60s, per: user }\n", ", third")
    } else {
        ("", "")
    };
    let named = if version.defect == Some(Defect::NoSuchLimit) { "lost" } else { "long" };
    let mut text = format!(
        "subjects: {{ user: {{ header: x-user }} }}\n\
         limits:\n  short: {{ quota: {short}, window: 2s, per: user }}\n  \
         long: {{ quota: {long}, window: {window}s, per: user{mode} }}\n{third}\
         rules:\n  - {{ name: short, match: {{ path: /short }}, limits: short }}\n  \
         - {{ name: long, match: {{ path: /long }}, limits: [{named}{also}] }}\n  \
         - {{ name: both, match: {{ path: /both }}, limits: [short, long{also}] }}\n\
         store:\n"
    );
    match version.percent {
        None if plan.store == StoreKind::Memcached => {
            text.push_str(&memcached(plan, &version.shards));
        }
        None => text.push_str(&format!("  {}\n", redis(plan, version, &version.shards))),
        Some(percent) => {
            let _ = writeln!(text, "  rollout:\n    percent: {percent}%");
            for (side, shard) in ["from", "to"].into_iter().zip(&version.shards) {
                let _ = writeln!(text, "    {side}: {{ {} }}", redis(plan, version, &[*shard]));
            }
        }
    }
    if version.defect == Some(Defect::Cut) {
        text.truncate(text.len() - text.len() / 4);
        text.push_str("{ [");
    }
    text
}

/// Returns the settings of a Redis store with the given shards.
fn redis(plan: &Plan, version: &Version, shards: &[usize]) -> String {
    let previous = version.previous.as_ref().map_or_else(String::new, |previous| {
        format!(", previous: {{ shards: {{ {} }} }}", shard_list(plan, previous))
    });
    let deadline =
        if version.defect == Some(Defect::NeedsRestart) { ", deadline: 16ms" } else { "" };
    let nodes = version.nodes.unwrap_or(plan.nodes);
    let step = if plan.uses_script { "script" } else { "function" };
    format!(
        "redis: {{ nodes: {nodes}, scripting: {step}, shards: {{ {} }}{previous}{deadline} }}",
        shard_list(plan, shards)
    )
}

/// Returns the settings of a memcached store. Each of the shards is one server.
fn memcached(plan: &Plan, shards: &[usize]) -> String {
    let servers = plan.servers().filter(|place| shards.contains(&place.shard));
    let servers: Vec<_> = servers.map(|place| format!("\"{}:11211\"", place.name())).collect();
    let (servers, nodes, deadline) = (servers.join(", "), plan.nodes, plan.deadline);
    format!("  memcached: {{ servers: [{servers}], nodes: {nodes}, deadline: {deadline}ms }}\n")
}

fn shard_list(plan: &Plan, shards: &[usize]) -> String {
    if plan.store == StoreKind::Cluster {
        let url = |place: ServerAddress| format!("\"redis://{}:6379\"", place.name());
        let nodes: Vec<_> = plan.servers().map(url).collect();
        return format!("a: {{ nodes: [{}] }}", nodes.join(", "));
    }
    let mut list = String::new();
    for shard in shards {
        let urls: Vec<_> = plan
            .servers()
            .filter(|place| place.shard == *shard)
            .map(|place| format!("\"redis://{}:6379\"", place.name()))
            .collect();
        let (name, replicas) = (shard_name(*shard), urls[1..].join(", "));
        if plan.sentinels == 0 {
            let _ = write!(list, "{name}: {{ primary: {}, replicas: [{replicas}] }}, ", urls[0]);
        } else {
            let url = |number| format!("\"redis://{}:26379\"", sentinel_name(number));
            let sentinels: Vec<_> = (0..plan.sentinels).map(url).collect();
            let sentinels = sentinels.join(", ");
            let _ = write!(list, "{name}: {{ sentinels: [{sentinels}], service: {name} }}, ");
        }
    }
    list
}
