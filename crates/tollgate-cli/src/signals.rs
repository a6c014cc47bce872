//! What a service manager and a terminal tell a process.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Resolves when the process is told to end: Ctrl-C, or SIGTERM as service managers send it.
pub(crate) fn terminated() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        eprintln!("told to end: no more connections; waiting for requests in flight");
    })
}
