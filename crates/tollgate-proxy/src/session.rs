use std::{net::IpAddr, sync::Arc};

use tollgate_http::{
    CloseReason, ConnectionMetrics, ConnectionSlot, Conversation, Phase, Shutdown,
};

use crate::forwarded::{PeerName, Scheme};

/// The place of a client connection in the registry of the proxy.
pub(crate) type Slot = ConnectionSlot<Conversation, ConnectionMetrics>;

/// A client connection in the registry of the proxy. Every task of the connection has a clone, and
/// its slot is free when the last one is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Session(Arc<Held>);

#[derive(Debug)]
struct Held {
    shutdown: Shutdown,
    peer: PeerName,
    slot: Slot,
}

impl Session {
    pub(crate) fn new(shutdown: Shutdown, peer: IpAddr, scheme: Scheme, slot: Slot) -> Self {
        Self(Arc::new(Held { shutdown, peer: PeerName::of(Some(peer), scheme), slot }))
    }

    /// Returns the client's address.
    pub(crate) fn peer(&self) -> &PeerName {
        &self.0.peer
    }

    /// Returns the state that the connection's reader and service share.
    pub(crate) fn conversation(&self) -> &Arc<Conversation> {
        self.0.slot.connection()
    }

    /// Returns whether nearly all connections of the proxy are in use.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.0.slot.is_nearly_full()
    }

    /// Counts an event of this connection that does not close it.
    pub(crate) fn count(&self, reason: CloseReason) {
        self.0.slot.observer().count(reason, self.0.slot.peer());
    }

    /// Returns whether the proxy is shutting down.
    pub(crate) fn is_parting(&self) -> bool {
        self.0.shutdown.phase() > Phase::Serving
    }

    /// Waits until the proxy has reached `phase`. If the proxy is gone, this counts as `Cut`.
    pub(crate) async fn reached(&self, phase: Phase) {
        self.0.shutdown.clone().reached(phase).await;
    }
}
