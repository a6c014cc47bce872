//! How the store stands, as the administration's door tells it.

mod two_stores;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tollgate::Limiter;
use tollgate_backend::{Backend, Counts, PolicyFile, ReloadStatus, ShardStatus};
use tollgate_server::http::Status;

use crate::shards::follow;

/// The status of what `limiter` asks, and of the `file` that its policy is from.
pub(crate) fn of(limiter: Arc<Limiter<Backend>>, file: Arc<PolicyFile>) -> Status {
    Status::new(move || {
        let (store, counts, map) = match limiter.store() {
            Backend::Memory(_) => ("memory", Value::Null, Value::Null),
            Backend::Redis(fleet) => {
                ("redis", counted(&fleet.counts()), follow::value(&fleet.map_status()))
            }
            Backend::Memcached(fleet) => {
                ("memcached", json!({ "stood_in": fleet.stood_in() }), Value::Null)
            }
            Backend::Rollout(moving) => ("rollout", two_stores::moving(moving), Value::Null),
            Backend::Shadow(compared) => ("shadow", two_stores::compared(compared), Value::Null),
        };
        let shards: Vec<Value> = limiter.store().status().iter().map(shard).collect();
        let policy = limiter.policy();
        json!({
            "policy": &**policy.version(),
            "reloads": reloads(&file.status()),
            "store": store,
            "map": map,
            "shards": shards,
            "counts": counts,
        })
    })
}

/// How the policy came in force, as far as that was after the start.
pub(crate) fn reloads(reloads: &ReloadStatus) -> Value {
    let refusal = reloads.refusal.as_ref();
    json!({
        "done": reloads.done,
        "refused": reloads.refused,
        "replaced_at": reloads.replaced_at.map(seconds),
        "refusal": refusal.map(|refusal| json!({
            "at": seconds(refusal.at),
            "reason": refusal.reason,
        })),
    })
}

/// Since the epoch.
fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn counted(counts: &Counts) -> Value {
    json!({
        "remembered": counts.remembered,
        "stood_in": counts.stood_in,
        "unanswered": counts.unanswered,
        "missed": counts.missed,
        "stranded": counts.stranded,
        "discarded": counts.discarded,
    })
}

fn shard(shard: &ShardStatus) -> Value {
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
        "primary": shard.primary(),
        "runs": shard.runs.to_string(),
        "clock_offset_ms": shard.clock_offset.map(|offset| offset.millis),
        "lanes": lanes.collect::<Vec<_>>(),
    })
}
