use std::{net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use tollgate_http::{
    CloseReason, ConnectionMetrics, ConnectionSlot, Conversation, MovingTimer, Phase, Shutdown,
};

use crate::forwarded::{PeerName, Scheme};

/// The entry of a client connection in the registry of the proxy.
pub(crate) type Slot = ConnectionSlot<Conversation, ConnectionMetrics>;

/// A client connection in the registry of the proxy. Every task of the connection has a clone. The
/// connection leaves the registry when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Session(Arc<Held>);

#[derive(Debug)]
struct Held {
    shutdown: Shutdown,
    peer: PeerName,
    slot: Slot,
    /// The timer of the last response, which the next response uses again.
    timer: Mutex<MovingTimer>,
}

impl Session {
    pub(crate) fn new(shutdown: Shutdown, peer: IpAddr, scheme: Scheme, slot: Slot) -> Self {
        let (peer, timer) = (PeerName::of(Some(peer), scheme), Mutex::default());
        Self(Arc::new(Held { shutdown, peer, slot, timer }))
    }

    /// Returns the client's address and protocol as texts for the forwarding fields.
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

    /// Counts an event that does not close this connection.
    pub(crate) fn count(&self, reason: CloseReason) {
        self.0.slot.observer().count(reason, self.0.slot.peer());
    }

    /// Takes the timer of the connection's last response, or a new one.
    pub(crate) fn take_timer(&self) -> MovingTimer {
        std::mem::take(&mut self.0.timer.lock())
    }

    /// Keeps a timer for the next response.
    pub(crate) fn keep_timer(&self, timer: MovingTimer) {
        *self.0.timer.lock() = timer;
    }

    /// Returns whether the proxy is shutting down.
    pub(crate) fn is_parting(&self) -> bool {
        self.0.shutdown.phase() > Phase::Serving
    }

    /// Waits until the proxy has reached `phase`. If the proxy no longer exists, the phase counts
    /// as `Cut`.
    pub(crate) async fn reached(&self, phase: Phase) {
        self.0.shutdown.clone().reached(phase).await;
    }
}
