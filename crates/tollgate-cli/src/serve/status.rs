//! The status of the store at the admin listener.

mod base_store;
mod migration;
mod node_name;
mod switches;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tollgate::Limiter;
use tollgate_backend::{Backend, PolicyFile, ReloadStatus};
use tollgate_server::http::Status;

/// Returns the status of the store of `limiter`, and of the `file` that its policy was loaded from.
pub(crate) fn of(limiter: Arc<Limiter<Backend>>, file: Arc<PolicyFile>) -> Status {
    let node = node_name::node_name();
    Status::new(move || {
        let leaves = limiter.store().base_stores();
        let counts = match (limiter.store(), &leaves[..]) {
            (Backend::Rollout(moving), _) => migration::moving(moving),
            (Backend::Shadow(compared), _) => migration::compared(compared),
            (_, [(_, leaf), ..]) => base_store::counts(leaf),
            (_, []) => Value::Null,
        };
        let all = |of: fn(&'static str, &Backend) -> Vec<Value>| {
            leaves.iter().flat_map(|(side, leaf)| of(side, leaf)).collect::<Vec<_>>()
        };
        let map = match &leaves[..] {
            [(_, leaf)] => base_store::map(leaf),
            // If the node has two stores, each of them has its own status.
            _ => Value::Null,
        };
        let policy = limiter.policy();
        json!({
            "node": &node,
            "policy": &**policy.version(),
            "reloads": reloads(&file.status()),
            "store": limiter.store().kind(),
            "map": map,
            "shards": all(base_store::shards),
            "servers": all(base_store::servers),
            "counts": counts,
            "switches": switches::switches(&limiter.overrides().table(), limiter.now()),
        })
    })
}

/// Returns a JSON document about the reloads: the numbers of reloads that were applied and
/// rejected, the time of the last applied reload, and the time and the reason of the current
/// rejection, if there is one.
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

/// Returns a time as seconds since the Unix epoch.
fn seconds(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
