//! Reloads certificates and tokens while the listeners are open.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tollgate_server::Access;

use super::listeners::{ListenerConfig, Listeners};
use crate::certificates::NamedCertificates;

/// The time between two checks of the files.
const PERIOD: Duration = Duration::from_secs(10);

/// Reloads certificates and tokens on SIGHUP, and within [`PERIOD`] after one of their files has
/// changed. If a file has an error, the error is logged and the previous content stays in use. The
/// reloads end when the returned value is dropped.
pub(crate) fn watch(
    listeners: Listeners,
    certificates: Vec<NamedCertificates>,
) -> io::Result<JoinSet<()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut watching = JoinSet::new();
    watching.spawn(async move {
        let files: Vec<PathBuf> = files(&listeners, &certificates);
        let watched = Arc::new((listeners, certificates));
        let mut observed = states(&files);
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_asked = tokio::select! {
                _ = hangup.recv() => true,
                _ = period.tick() => false,
            };
            let now = states(&files);
            if !is_asked && now == observed {
                continue;
            }
            observed = now;
            let watched = Arc::clone(&watched);
            let read = move || {
                watched.1.iter().for_each(reload_certificates);
                watched.0.0.iter().for_each(reload_tokens);
            };
            // Reading files may block. If the task panics, nothing changes.
            let _ = tokio::task::spawn_blocking(read).await;
        }
    });
    Ok(watching)
}

/// Returns the files of the tokens and certificates.
fn files(listeners: &Listeners, certificates: &[NamedCertificates]) -> Vec<PathBuf> {
    let tokens = listeners.0.iter().filter_map(|listener| listener.tokens_file.clone());
    certificates.iter().flat_map(|one| one.files()).map(Path::to_owned).chain(tokens).collect()
}

/// Returns the modification time and the size of each file, which change when the content of the
/// file changes.
fn states(files: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let state = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.iter().map(state).collect()
}

fn reload_certificates(certificates: &NamedCertificates) {
    let name = certificates.name;
    match certificates.reload() {
        Ok(()) => tracing::info!(listener = name, "certificates reloaded"),
        Err(error) => {
            tracing::warn!(
                listener = name,
                "certificates not reloaded, the previous ones stay in use: {error}"
            );
        }
    }
}

fn reload_tokens(listener: &ListenerConfig) {
    let name = listener.kind.name();
    if let (Some(path), Access::Tokens(tokens)) = (&listener.tokens_file, &listener.access) {
        let replaced = fs::read_to_string(path)
            .map_err(|error| error.to_string())
            .and_then(|text| tokens.replace(&text).map_err(|error| error.to_string()));
        match replaced {
            Ok(()) => tracing::info!(listener = name, "tokens reloaded"),
            Err(error) => {
                let path = path.display();
                tracing::warn!(
                    listener = name,
                    "tokens not reloaded, the previous ones stay in use: {path}: {error}"
                );
            }
        }
    }
}
