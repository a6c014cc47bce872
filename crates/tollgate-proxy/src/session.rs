use std::{net::IpAddr, sync::Arc};

use tokio::sync::watch;

use crate::{
    CloseReason, connections::ConnectionSlot, conversation::Conversation, forwarded::PeerName,
};

/// A client connection in the registry of the proxy. Every task of the connection has a clone, and
/// its slot is free when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Session(Arc<Held>);

#[derive(Debug)]
struct Held {
    phase: watch::Receiver<Phase>,
    peer: PeerName,
    slot: ConnectionSlot,
}

/// The phases of the shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// Requests in flight may finish.
    Draining,
    /// Requests in flight are aborted.
    Cut,
}

impl Session {
    pub(crate) fn new(phase: watch::Receiver<Phase>, peer: IpAddr, slot: ConnectionSlot) -> Self {
        Self(Arc::new(Held { phase, peer: PeerName::of(Some(peer)), slot }))
    }

    /// Returns the client's address.
    pub(crate) fn peer(&self) -> &PeerName {
        &self.0.peer
    }

    /// Returns the state that the connection's reader and service share.
    pub(crate) fn conversation(&self) -> &Arc<Conversation> {
        self.0.slot.conversation()
    }

    /// Returns whether nearly all connections of the proxy are in use.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.0.slot.is_nearly_full()
    }

    /// Counts an event of this connection that does not close it.
    pub(crate) fn count(&self, reason: CloseReason) {
        self.0.slot.count(reason);
    }

    /// Returns whether the proxy is shutting down.
    pub(crate) fn is_parting(&self) -> bool {
        *self.0.phase.borrow() > Phase::Serving
    }

    /// Waits until the proxy has reached `phase`. If the proxy is gone, this counts as `Cut`.
    pub(crate) async fn reached(&self, phase: Phase) {
        // An error means that the sender was dropped, which exists as long as the proxy.
        let _ = self.0.phase.clone().wait_for(|now| *now >= phase).await;
    }
}
