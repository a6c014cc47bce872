//! How a store stands that limits are kept in: alone, or as one of two.

use serde_json::{Value, json};
use tollgate_backend::{Counts, Leaf, MemcachedStatus, ShardStatus};

use crate::shards::follow;

/// The word of the policy file for it.
pub(super) const fn kind(leaf: &Leaf<'_>) -> &'static str {
    match leaf {
        Leaf::Memory(_) => "memory",
        Leaf::Redis(_) => "redis",
        Leaf::Memcached(_) => "memcached",
    }
}

/// What was decided without its servers, where it has any.
pub(super) fn counts(leaf: &Leaf<'_>) -> Value {
    match leaf {
        Leaf::Memory(_) => Value::Null,
        Leaf::Redis(fleet) => counted(&fleet.counts()),
        Leaf::Memcached(fleet) => counted(&fleet.counts()),
    }
}

/// Its map of shards, where it has one that can change.
pub(super) fn map(leaf: &Leaf<'_>) -> Value {
    match leaf {
        Leaf::Memory(_) | Leaf::Memcached(_) => Value::Null,
        Leaf::Redis(fleet) => follow::value(&fleet.map_status()),
    }
}

/// Its shards in Redis, if it is the store of this `side`.
pub(super) fn shards(side: &'static str, leaf: &Leaf<'_>) -> Vec<Value> {
    leaf.shards().iter().map(|it| shard(side, it)).collect()
}

/// Its servers of memcached, if it is the store of this `side`.
pub(super) fn servers(side: &'static str, leaf: &Leaf<'_>) -> Vec<Value> {
    let Leaf::Memcached(fleet) = leaf else { return Vec::new() };
    fleet.status().iter().map(|it| server(side, it)).collect()
}

fn counted(counts: &Counts) -> Value {
    json!({
        "remembered": counts.remembered,
        "stood_in": counts.stood_in,
        "unanswered": counts.unanswered,
        "missed": counts.missed,
        "stranded": counts.stranded,
        "discarded": counts.discarded,
        "leases": {
            "decided": counts.leases.decided,
            "taken": counts.leases.taken,
            "units_taken": counts.leases.units_taken,
            "units_given_back": counts.leases.units_given_back,
            "units_lost": counts.leases.units_lost,
        },
    })
}

fn shard(side: &'static str, shard: &ShardStatus) -> Value {
    let lanes = shard.lanes.iter().map(|lane| {
        json!({
            "address": lane.address,
            "circuit": format!("{:?}", lane.gate).to_lowercase(),
            "opened": lane.opened,
            "clock_steps": lane.clock_steps,
            "calls": lane.counts.calls,
            "jobs": lane.counts.jobs,
            "late": lane.counts.late,
            "overloaded": lane.counts.overloaded,
            "timed_out": lane.counts.timed_out,
            "last_error": lane.last_error.as_ref().map(ToString::to_string),
        })
    });
    json!({
        "name": &*shard.name,
        "side": named(side),
        "primary": shard.primary(),
        "runs": shard.runs.to_string(),
        "repaired": {
            "units": shard.repaired.units,
            "limits": shard.repaired.places,
            "abandoned": shard.repaired.abandoned,
        },
        "clock_offset_ms": shard.clock_offset.map(|offset| offset.millis),
        "windows_lost": shard.windows_lost,
        "lanes": lanes.collect::<Vec<_>>(),
    })
}

fn server(side: &'static str, MemcachedStatus { name, server, .. }: &MemcachedStatus) -> Value {
    json!({
        "name": &**name,
        "side": named(side),
        "connections": server.connections,
        "connected": server.connected,
        "evicted": server.losses.evicted,
        "restarts": server.losses.restarts,
        "flushes": server.losses.flushes,
        "torn": server.torn,
        "outrun": server.outrun,
        "contended": server.contended,
        "stranded": server.stranded,
        "last_error": server.last_error.as_ref().map(ToString::to_string),
    })
}

/// Which of two stores it is; nothing where there is one.
fn named(side: &'static str) -> Option<&'static str> {
    Some(side).filter(|side| !side.is_empty())
}
