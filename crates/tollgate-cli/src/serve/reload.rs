//! Certificates and tokens, read anew while the doors are open.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tollgate_server::Access;

use super::doors::{Door, Doors};

/// How often files are looked at.
const PERIOD: Duration = Duration::from_secs(10);

/// Reads certificates and tokens anew on SIGHUP, and within [`PERIOD`] after one of their files has
/// changed. What is wrong is told, and what was in force stays so. Ends when the result is dropped.
pub(crate) fn watch(doors: Doors) -> io::Result<JoinSet<()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    let mut watching = JoinSet::new();
    watching.spawn(async move {
        let files: Vec<PathBuf> = doors.0.iter().flat_map(files).collect();
        let mut seen = states(&files);
        let mut period = interval(PERIOD);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_asked = tokio::select! {
                _ = hangup.recv() => true,
                _ = period.tick() => false,
            };
            let now = states(&files);
            if !is_asked && now == seen {
                continue;
            }
            seen = now;
            let doors = doors.clone();
            let read = move || doors.0.iter().for_each(read_anew);
            // Reading files may block; a panic there leaves everything as it was.
            let _ = tokio::task::spawn_blocking(read).await;
        }
    });
    Ok(watching)
}

/// The files of a door.
fn files(door: &Door) -> Vec<PathBuf> {
    let tls = door.tls.iter().flat_map(|tls| tls.files()).map(Path::to_owned);
    tls.chain(door.tokens_file.clone()).collect()
}

/// What tells that a file has changed.
fn states(files: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let state = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.iter().map(state).collect()
}

fn read_anew(door: &Door) {
    let name = door.kind.name();
    if let Some(tls) = &door.tls {
        match tls.reload() {
            Ok(()) => tracing::info!(door = name, "certificates read anew"),
            Err(error) => tracing::warn!(door = name, "the certificates in force stay so: {error}"),
        }
    }
    if let (Some(path), Access::Tokens(tokens)) = (&door.tokens_file, &door.access) {
        let replaced = fs::read_to_string(path)
            .map_err(|error| error.to_string())
            .and_then(|text| tokens.replace(&text).map_err(|error| error.to_string()));
        match replaced {
            Ok(()) => tracing::info!(door = name, "tokens read anew"),
            Err(error) => {
                let path = path.display();
                tracing::warn!(door = name, "the tokens in force stay so: {path}: {error}");
            }
        }
    }
}
