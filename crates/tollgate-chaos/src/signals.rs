//! The signals with which a terminal or a service manager ends the program.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Resolves when the process receives Ctrl-C or SIGTERM.
pub(crate) fn shutdown_requested() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
