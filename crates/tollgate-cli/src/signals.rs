//! Signals from a service manager or a terminal.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::log;

/// Waits like [`shutdown_requested`], and logs what the process waits for.
pub(crate) fn terminated() -> io::Result<impl Future<Output = ()>> {
    let message = shutdown_requested()?;
    Ok(async move {
        message.await;
        log::info(
            &"shutdown requested: no new connections are accepted; waiting for requests in flight",
        );
    })
}

/// Resolves when the process is requested to end, either by Ctrl-C or by SIGTERM, which service
/// managers send.
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
