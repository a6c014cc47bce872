//! The policy file, read anew while the process runs.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinSet, spawn_blocking};
use tollgate_backend::PolicyFile;

/// Reads `file` anew on SIGHUP, and when its text has changed. Ends when the result is dropped.
pub(crate) fn watch(file: Arc<PolicyFile>) -> io::Result<JoinSet<()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut watching = JoinSet::new();
    watching.spawn(Arc::clone(&file).watch());
    watching.spawn(async move {
        while hangup.recv().await.is_some() {
            let file = Arc::clone(&file);
            // What came of it is told in the log and by the status.
            let _ = spawn_blocking(move || file.reload().is_ok()).await;
        }
    });
    Ok(watching)
}
