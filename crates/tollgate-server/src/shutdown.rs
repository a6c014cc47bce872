//! How far a process is on its way to its end.

use tokio::sync::watch;

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Whoever comes is served.
    #[default]
    Serving,
    /// Nobody new is accepted; what was asked is answered, and its connection closed after it.
    Draining,
    /// Time is up.
    Cut,
}

/// What a connection knows of the process's end.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<Phase>);

impl Shutdown {
    pub(crate) fn new() -> (watch::Sender<Phase>, Self) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        (sender, Self(receiver))
    }

    /// How far it is now.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Resolves once it is as far as `phase`.
    pub async fn reached(&mut self, phase: Phase) {
        // Without a sender the process has ended otherwise.
        let _ = self.0.wait_for(|now| *now >= phase).await;
    }
}
