use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, watch};

/// A client connection's place in the proxy. Whatever goes on for the connection holds a clone: the place is free when
/// the last is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    phase: watch::Receiver<Phase>,
    _place: Arc<OwnedSemaphorePermit>,
}

/// How far the proxy's end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// What is in flight may finish.
    Draining,
    /// What is in flight is cut off.
    Cut,
}

impl Session {
    pub(crate) fn new(phase: watch::Receiver<Phase>, place: OwnedSemaphorePermit) -> Self {
        Self { phase, _place: Arc::new(place) }
    }

    /// Waits until the proxy is at least as far as `phase`. A proxy that is gone counts as cut off.
    pub(crate) async fn reached(&mut self, phase: Phase) {
        // An error means that the sender, which lives as long as the proxy, is gone.
        let _ = self.phase.wait_for(|now| *now >= phase).await;
    }
}
