//! What a terminal and a service manager tell this process.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Resolves when the process is told to end: Ctrl-C, or SIGTERM.
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
