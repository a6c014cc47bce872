//! Plans a rebalance to another shard map.

use std::fmt::Write;

use serde_json::json;
use tollgate::HashKey;
use tollgate_backend::{SAMPLE, ShardPlan};
use tollgate_policy::{RedisSettings, ShardSettings, Topology};

use crate::failure::Failure;
use crate::output::Form;
use crate::shards::share::percent;

/// Returns a text with the shares of the shards in `from` and `to`, the subjects that move between
/// the shards, and instructions for starting the rebalance.
pub(crate) fn render(
    from: &RedisSettings,
    to: &RedisSettings,
    key: &HashKey,
    form: Form,
) -> Result<String, Failure> {
    let plan = ShardPlan::new(from, to, key)?;
    let previous = previous(from, to);
    let elsewhere = elsewhere(from, to);
    if form == Form::Json {
        let flows = plan
            .flows
            .iter()
            .map(|flow| json!({ "from": &*flow.from, "to": &*flow.to, "subjects": flow.subjects }));
        let value = json!({
            "from": plan.from.to_string(),
            "to": plan.to.to_string(),
            "sampled": SAMPLE,
            "moved": plan.moved,
            "flows": flows.collect::<Vec<_>>(),
            "previous": previous,
            "changed_servers": elsewhere,
        });
        return Ok(format!("{value:#}\n"));
    }
    let mut text = format!("map {} to {}\n\n", plan.from, plan.to);
    let _ = writeln!(text, "{} of {SAMPLE} sampled subjects move ({})", plan.moved, of(plan.moved));
    let width = |name: fn(&tollgate_backend::Flow) -> &str| {
        plan.flows.iter().map(|flow| name(flow).len()).max().unwrap_or_default()
    };
    let (left, right) = (width(|flow| &flow.from), width(|flow| &flow.to));
    for flow in &plan.flows {
        let (from, to, share) = (&flow.from, &flow.to, of(flow.subjects));
        let _ = writeln!(text, "  {from:left$} -> {to:right$}  {:>6}  {share:>6}", flow.subjects);
    }
    text.push_str("\nshares by weight\n");
    for (name, before, after) in shares(from, to) {
        let _ = writeln!(text, "  {name:left$}  {:>7} -> {:>7}", share(before), share(after));
    }
    for name in &elsewhere {
        let _ = writeln!(
            text,
            "\n{name} has other servers. Unless these have its counters, as a replica does, its \
             clients start from zero there, and nodes with different policies count separately. To move \
             its counters, give the new servers a shard name of their own."
        );
    }
    if plan.from == plan.to {
        if elsewhere.is_empty() {
            text.push_str("\nthe maps are the same: there is nothing to do\n");
        }
    } else {
        text.push_str("\nto begin, in store.redis of the new policy:\n\n");
        text.push_str(&previous);
    }
    Ok(text)
}

/// Returns the shards that are in both maps but have other servers in `to`.
fn elsewhere<'r>(from: &RedisSettings, to: &'r RedisSettings) -> Vec<&'r str> {
    let is_elsewhere = |shard: &&ShardSettings| {
        find(from, &shard.name).is_some_and(|before| before.topology != shard.topology)
    };
    to.shards.iter().filter(is_elsewhere).map(|shard| &*shard.name).collect()
}

/// The weight of one shard and the weight of all shards. `None` if the map does not contain the
/// shard.
type Part = Option<(u64, u64)>;

fn shares(from: &RedisSettings, to: &RedisSettings) -> Vec<(String, Part, Part)> {
    let new = to.shards.iter().filter(|shard| find(from, &shard.name).is_none());
    let all = from.shards.iter().chain(new);
    let name = |shard: &ShardSettings| shard.name.to_string();
    let row = |shard| (name(shard), part(from, &shard.name), part(to, &shard.name));
    all.map(row).collect()
}

fn part(redis: &RedisSettings, name: &str) -> Part {
    let weight = |shard: &ShardSettings| u64::from(shard.weight.get());
    Some((weight(find(redis, name)?), redis.shards.iter().map(weight).sum()))
}

fn find<'r>(redis: &'r RedisSettings, name: &str) -> Option<&'r ShardSettings> {
    redis.shards.iter().find(|shard| *shard.name == *name)
}

fn share(part: Part) -> String {
    part.map_or_else(|| "-".to_owned(), |(part, whole)| percent(part, whole))
}

fn of(subjects: u32) -> String {
    percent(subjects.into(), SAMPLE.into())
}

/// Returns the previous map in the syntax of a policy file. For a shard that stays in the map, only
/// its weight is written. Passwords in URLs are masked, and the reader has to fill them in.
fn previous(from: &RedisSettings, to: &RedisSettings) -> String {
    let mut text = String::from("    previous:\n      shards:\n");
    for shard in &from.shards {
        let stays = find(to, &shard.name).is_some();
        let mut keys = if stays { Vec::new() } else { server_addresses(shard) };
        if shard.weight.get() != 1 {
            keys.push(format!("weight: {}", shard.weight));
        }
        let keys =
            if keys.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", keys.join(", ")) };
        let _ = writeln!(text, "        {}: {keys}", shard.name);
    }
    if let Some(name) = &from.route_by {
        let _ = writeln!(text, "      route_by: {name}");
    }
    text
}

/// Returns the servers of a shard as keys and values.
fn server_addresses(shard: &ShardSettings) -> Vec<String> {
    let list = |urls: &[Box<str>]| {
        let urls: Vec<_> = urls.iter().map(|url| url_word(url)).collect();
        format!("[{}]", urls.join(", "))
    };
    match &shard.topology {
        Topology::Static { primary, replicas } => {
            let mut keys = vec![format!("primary: {}", url_word(primary))];
            if !replicas.is_empty() {
                keys.push(format!("replicas: {}", list(replicas)));
            }
            keys
        }
        Topology::Sentinel { sentinels, service, transport } => {
            let mut keys =
                vec![format!("sentinels: {}", list(sentinels)), format!("service: {service}")];
            if *transport == tollgate_policy::Transport::Tls {
                keys.push("transport: tls".to_owned());
            }
            keys
        }
        Topology::Cluster { nodes } => vec![format!("nodes: {}", list(nodes))],
    }
}

/// Returns the URL in quotes with its password masked.
fn url_word(url: &str) -> String {
    let masked = url.split_once("://").and_then(|(scheme, rest)| {
        let (login, address) = rest.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("\"{scheme}://{user}:***@{address}\""))
    });
    masked.unwrap_or_else(|| format!("\"{url}\""))
}
