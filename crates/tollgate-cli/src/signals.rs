//! What a service manager and a terminal tell a process.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::log;

/// As [`shutdown_requested`], and says what is waited for.
pub(crate) fn terminated() -> io::Result<impl Future<Output = ()>> {
    let message = shutdown_requested()?;
    Ok(async move {
        message.await;
        log::info(&"told to end: no more connections; waiting for requests in flight");
    })
}

/// Resolves when the process is told to end: Ctrl-C, or SIGTERM as service managers send it.
fn shutdown_requested() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
