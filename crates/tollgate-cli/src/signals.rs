//! What a service manager and a terminal tell a process.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::log;

/// As [`told_to_end`], and says what is waited for.
pub(crate) fn terminated() -> io::Result<impl Future<Output = ()>> {
    let told = told_to_end()?;
    Ok(async move {
        told.await;
        log::tell(&"told to end: no more connections; waiting for requests in flight");
    })
}

/// Resolves when the process is told to end: Ctrl-C, or SIGTERM as service managers send it.
pub(crate) fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
