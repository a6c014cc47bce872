//! How the store stands, as the administration's listener tells it.

mod base_store;
mod migration;
mod switches;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tollgate::Limiter;
use tollgate_backend::{Backend, BaseStore, PolicyFile, ReloadStatus};
use tollgate_server::http::Status;

/// The status of what `limiter` asks, and of the `file` that its policy is from.
pub(crate) fn of(limiter: Arc<Limiter<Backend>>, file: Arc<PolicyFile>) -> Status {
    Status::new(move || {
        let leaves = limiter.store().base_stores();
        let counts = match (limiter.store(), &leaves[..]) {
            (Backend::Rollout(moving), _) => migration::moving(moving),
            (Backend::Shadow(compared), _) => migration::compared(compared),
            (_, [(_, leaf), ..]) => base_store::counts(leaf),
            (_, []) => Value::Null,
        };
        let all = |of: fn(&'static str, &BaseStore<'_>) -> Vec<Value>| {
            leaves.iter().flat_map(|(side, leaf)| of(side, leaf)).collect::<Vec<_>>()
        };
        let map = match &leaves[..] {
            [(_, leaf)] => base_store::map(leaf),
            // Each of two has its own, beside its counts.
            _ => Value::Null,
        };
        let policy = limiter.policy();
        json!({
            "policy": &**policy.version(),
            "reloads": reloads(&file.status()),
            "store": kind(limiter.store()),
            "map": map,
            "shards": all(base_store::shards),
            "servers": all(base_store::servers),
            "counts": counts,
            "switches": switches::switches(&limiter.overrides().table(), limiter.now()),
        })
    })
}

/// The word of the policy file for it.
const fn kind(store: &Backend) -> &'static str {
    match store {
        Backend::Memory(_) => "memory",
        Backend::Redis(_) => "redis",
        Backend::Memcached(_) => "memcached",
        Backend::Rollout(_) => "rollout",
        Backend::Shadow(_) => "shadow",
    }
}

/// How the policy came in force, as far as that was after the start.
pub(crate) fn reloads(reloads: &ReloadStatus) -> Value {
    let refusal = reloads.refusal.as_ref();
    json!({
        "applied": reloads.done,
        "rejected": reloads.refused,
        "last_applied_at": reloads.replaced_at.map(seconds),
        "rejection": refusal.map(|refusal| json!({
            "at": seconds(refusal.at),
            "reason": refusal.reason,
        })),
    })
}

/// Since the epoch.
fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
