//! The phases in which a process shuts down.

use tokio::sync::watch;

/// A phase of the shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// New connections and requests are served.
    #[default]
    Serving,
    /// No connections are accepted. Requests that have arrived are still answered, and each
    /// connection is closed after its last response.
    Draining,
    /// Draining has ended, because all connections are closed or the time limit is over.
    /// Connections that are still open are closed at once.
    Cut,
}

/// A receiver that reports the current phase of the shutdown to a connection.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<Phase>);

impl Shutdown {
    /// Returns a sender that sets the phase, and a receiver that reports it.
    #[must_use]
    pub fn new() -> (watch::Sender<Phase>, Self) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        (sender, Self(receiver))
    }

    /// Returns the current phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until the shutdown has reached `phase` or a later phase.
    pub async fn reached(&mut self, phase: Phase) {
        // An error means that the sender was dropped, so the process is ending already.
        let _ = self.0.wait_for(|now| *now >= phase).await;
    }
}
