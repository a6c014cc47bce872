//! Reloads the policy file while the process runs.

use std::io;
use std::sync::Arc;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinSet, spawn_blocking};
use tollgate::model::Policy;
use tollgate_backend::{PolicyFile, Reloaded};
use tollgate_server::http::Reload;

/// Returns a summary of a policy: the number of its limits and the number of its rules.
pub(crate) fn summary(policy: &Policy) -> String {
    let counted = |count: usize, thing: &str| match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    };
    let (limits, rules) = (policy.limits().len(), policy.rules().len());
    format!("{}, {}", counted(limits, "limit"), counted(rules, "rule"))
}

/// Reloads `file` on SIGHUP and when its text has changed, until the returned value is dropped.
pub(crate) fn watch(file: Arc<PolicyFile>) -> io::Result<JoinSet<()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut watching = JoinSet::new();
    watching.spawn(Arc::clone(&file).watch());
    watching.spawn(async move {
        while hangup.recv().await.is_some() {
            let file = Arc::clone(&file);
            // The log and the status report the result of the reload.
            let _ = spawn_blocking(move || file.reload().is_ok()).await;
        }
    });
    Ok(watching)
}

/// Returns the function that reloads `file` when an administrator requests a reload.
pub(crate) fn reload(file: Arc<PolicyFile>) -> Reload {
    Reload::new(move || match file.reload() {
        Ok(Reloaded::Unchanged) => Ok(json!({ "replaced": false, "policy": &*file.version() })),
        Ok(Reloaded::Replaced { version, .. }) => {
            Ok(json!({ "replaced": true, "policy": &*version }))
        }
        Err(error) => Err(error.to_string()),
    })
}
