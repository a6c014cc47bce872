//! The status of a store that keeps counters. The node has one such store or two.

use serde_json::{Value, json};
use tollgate_backend::{Backend, Counts, MemcachedStatus, ShardStatus};

use crate::metrics::circuit_breaker;
use crate::shards::follow;

/// Returns the counts of decisions that were made without the store's servers, or null if the store
/// has no servers.
pub(super) fn counts(store: &Backend) -> Value {
    store.counts().map_or(Value::Null, |counts| counted(&counts))
}

/// Returns the shard map of the store, if the store has a shard map that can change.
pub(super) fn map(store: &Backend) -> Value {
    store.map_status().map_or(Value::Null, |map| follow::value(&map))
}

/// Returns the Redis shards of the store. `side` is the name of the store, which each shard
/// contains if the node has two stores.
pub(super) fn shards(side: &'static str, store: &Backend) -> Vec<Value> {
    store.status().iter().map(|it| shard(side, it)).collect()
}

/// Returns the memcached servers of the store. `side` is the name of the store, which each server
/// contains if the node has two stores.
pub(super) fn servers(side: &'static str, store: &Backend) -> Vec<Value> {
    store.servers().iter().map(|it| server(side, it)).collect()
}

fn counted(counts: &Counts) -> Value {
    json!({
        "deny_cache_hits": counts.deny_cache_hits,
        "fallback_decisions": counts.fallback_decisions,
        "unanswered": counts.unanswered,
        "deadline_misses": counts.deadline_misses,
        "refund_failures": counts.unrefunded,
        "discarded": counts.discarded,
        "quota_leases": {
            "decisions": counts.leases.decided,
            "taken": counts.leases.taken,
            "units_taken": counts.leases.units_taken,
            "units_returned": counts.leases.units_returned,
            "units_lost": counts.leases.units_lost,
        },
    })
}

fn shard(side: &'static str, shard: &ShardStatus) -> Value {
    let batchers = shard.batchers.iter().map(|batcher| {
        json!({
            "address": batcher.address,
            "circuit_breaker": circuit_breaker(batcher.circuit_state),
            "circuit_breaker_opened": batcher.opened,
            "clock_steps": batcher.clock_steps,
            "batches": batcher.counts.calls,
            "jobs": batcher.counts.jobs,
            "retries": batcher.counts.late,
            "overloaded": batcher.counts.overloaded,
            "unknown_outcomes": batcher.counts.timed_out,
            "last_error": batcher.last_error.as_ref().map(ToString::to_string),
        })
    });
    json!({
        "name": &*shard.name,
        "side": named(side),
        "primary": shard.primary(),
        "scripting": shard.runs.to_string(),
        "replayed": {
            "units": shard.replayed.units,
            "limits": shard.replayed.limits,
            "abandoned": shard.replayed.abandoned,
        },
        "clock_offset_ms": shard.clock_offset.map(|offset| offset.millis),
        "windows_lost": shard.windows_lost,
        "servers": batchers.collect::<Vec<_>>(),
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
        "cas_conflicts": server.cas_conflicts,
        "contended": server.contended,
        "refund_failures": server.unrefunded,
        "last_error": server.last_error.as_ref().map(ToString::to_string),
    })
}

/// Returns the name of this store if the node has two stores, and `None` if the node has only one
/// store.
fn named(side: &'static str) -> Option<&'static str> {
    Some(side).filter(|side| !side.is_empty())
}
