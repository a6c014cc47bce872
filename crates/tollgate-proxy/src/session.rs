use std::{net::IpAddr, sync::Arc};

use tokio::sync::watch;

use crate::{
    CloseReason, connections::ConnectionSlot, conversation::Conversation, forwarded::PeerName,
};

/// A client connection's place in the proxy. Whatever goes on for the connection holds a clone: the place is free when
/// the last is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Session(Arc<Held>);

#[derive(Debug)]
struct Held {
    phase: watch::Receiver<Phase>,
    peer: PeerName,
    slot: ConnectionSlot,
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
    pub(crate) fn new(phase: watch::Receiver<Phase>, peer: IpAddr, slot: ConnectionSlot) -> Self {
        Self(Arc::new(Held { phase, peer: PeerName::of(Some(peer)), slot }))
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> &PeerName {
        &self.0.peer
    }

    /// What the connection's reader and the service tell each other.
    pub(crate) fn conversation(&self) -> &Arc<Conversation> {
        self.0.slot.conversation()
    }

    /// Whether nearly all connections of the proxy are in use.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.0.slot.is_nearly_full()
    }

    /// Counts an event of this connection that does not close it.
    pub(crate) fn count(&self, reason: CloseReason) {
        self.0.slot.count(reason);
    }

    /// Whether the proxy ends.
    pub(crate) fn is_parting(&self) -> bool {
        *self.0.phase.borrow() > Phase::Serving
    }

    /// Waits until the proxy is at least as far as `phase`. A proxy that is gone counts as cut off.
    pub(crate) async fn reached(&self, phase: Phase) {
        // An error means that the sender, which lives as long as the proxy, is gone.
        let _ = self.0.phase.clone().wait_for(|now| *now >= phase).await;
    }
}
