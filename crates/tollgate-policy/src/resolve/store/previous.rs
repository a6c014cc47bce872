//! Converts the key `previous` to the previous shard map, which a policy contains during a
//! rebalance.

use super::shards::{ResolvedShards, listed, shard, weight};
use super::topology::{NamedServers, topology};
use crate::decode::{Field, Named, quoted};
use crate::raw::{Redis, Shard};
use crate::report::Report;
use crate::settings::{PreviousShardMap, ShardSettings, Topology};

/// Returns the previous shard map, and adds the servers of its removed shards to `shards`, the new
/// shard map. Returns `None` if the file has no previous shard map, and `Some(None)` if one of the
/// two maps has a mistake, which is reported.
pub(super) fn map(
    redis: &Redis,
    shards: &mut Option<ResolvedShards>,
    report: &mut Report<'_>,
) -> Option<Option<PreviousShardMap>> {
    let given = match &redis.previous {
        Field::Absent => return None,
        Field::Invalid => return Some(None),
        Field::Value(given) => given,
    };
    let raw = &given.value;
    // A shard that stays is checked against the new map. If the new map has mistakes, no mistakes
    // of the previous map are reported.
    let Some(ResolvedShards { shards, named_servers }) = shards else { return Some(None) };
    let Some(listed) = listed(&raw.shards, report) else { return Some(None) };
    let left: Vec<_> =
        listed.iter().map(|named| one(named, shards, named_servers, report)).collect();
    let Some(left) = left.into_iter().collect::<Option<Vec<_>>>() else { return Some(None) };
    let route_by = raw.route_by.value().map(|name| Box::from(&*name.0));
    let comes = redis.route_by.value().map(|name| Box::from(&*name.0));
    if route_by == comes && is_same(&left, shards) {
        let hint = "remove `previous`: it is for an earlier map";
        report.error(given.key, "`previous` is the same map as `shards`: no subject moves", hint);
        return Some(None);
    }
    if route_by != comes && shards.iter().any(is_cluster) {
        let hint = "in a cluster, `route_by` is part of the keys: move to another shard first";
        report.error(given.key, "`route_by` changes, but a shard is a cluster", hint);
        return Some(None);
    }
    if route_by.is_none() && comes.is_some() {
        let message = "`previous` has no `route_by`: nearly all clients move";
        report.warning(given.key, message, "if it was the same before, repeat it here");
    }
    Some(Some(PreviousShardMap { shards: left, route_by }))
}

/// Returns one shard of the previous map, or `None` after reporting a mistake. `shards` are the
/// shards of the new map, and `named_servers` collects the servers of removed shards.
fn one(
    named: &Named<Shard>,
    shards: &[ShardSettings],
    named_servers: &mut NamedServers,
    report: &mut Report<'_>,
) -> Option<ShardSettings> {
    let raw = named.value.as_ref()?;
    let Some(stays) = shards.iter().find(|shard| *shard.name == *named.name.value) else {
        return shard(named, named_servers, report);
    };
    let weight = weight(raw, report)?;
    if names_servers(raw)
        && topology(named, &mut NamedServers::default(), report)? != stays.topology
    {
        let message = format_args!(
            "the shard {} has different servers in `shards` and `previous`",
            quoted(&stays.name)
        );
        let hint = "a shard's name identifies its counters: give a shard that starts without them \
                    another name";
        report.error(named.name.at, message, hint);
        return None;
    }
    Some(ShardSettings { weight, ..stays.clone() })
}

fn is_cluster(shard: &ShardSettings) -> bool {
    matches!(shard.topology, Topology::Cluster { .. })
}

fn names_servers(shard: &Shard) -> bool {
    let is_said = [
        shard.topology.is_absent(),
        shard.primary.is_absent(),
        shard.replicas.is_absent(),
        shard.sentinels.is_absent(),
        shard.service.is_absent(),
        shard.transport.is_absent(),
        shard.nodes.is_absent(),
    ];
    is_said.contains(&false)
}

/// Returns whether both shard maps have the same shards with the same weights. With the same
/// `route_by`, every subject then has the same shard in both.
fn is_same(left: &[ShardSettings], comes: &[ShardSettings]) -> bool {
    let is_there = |shard: &ShardSettings| {
        comes.iter().any(|other| other.name == shard.name && other.weight == shard.weight)
    };
    left.len() == comes.len() && left.iter().all(is_there)
}
