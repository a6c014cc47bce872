use std::{net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use tollgate_http::{
    CloseReason, ConnectionMetrics, ConnectionSlot, Conversation, MovingTimer, Phase, Shutdown,
};

use crate::forwarded::{PeerName, Scheme};

/// The entry of a client connection in [`Connections`](tollgate_http::Connections), the registry of
/// all client connections of the proxy.
pub(crate) type Slot = ConnectionSlot<Conversation, ConnectionMetrics>;

/// A handle to a client connection, which is registered in
/// [`Connections`](tollgate_http::Connections). Every task of the connection has a clone. The
/// connection leaves the registry when the last clone is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Session(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    shutdown: Shutdown,
    peer: PeerName,
    slot: Slot,
    /// The timer of the connection's last response. The next response reuses it.
    timer: Mutex<MovingTimer>,
}

impl Session {
    pub(crate) fn new(shutdown: Shutdown, peer: IpAddr, scheme: Scheme, slot: Slot) -> Self {
        let (peer, timer) = (PeerName::of(Some(peer), scheme), Mutex::default());
        Self(Arc::new(Shared { shutdown, peer, slot, timer }))
    }

    /// Returns the client's address and protocol as texts for the forwarding fields.
    pub(crate) fn peer(&self) -> &PeerName {
        &self.0.peer
    }

    /// Returns the state that the connection's reader and service share.
    pub(crate) fn conversation(&self) -> &Arc<Conversation> {
        self.0.slot.connection()
    }

    /// Returns whether the number of client connections is close to its limit.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.0.slot.is_nearly_full()
    }

    /// Counts `reason` in the metrics of connections, although this connection stays open.
    pub(crate) fn count(&self, reason: CloseReason) {
        self.0.slot.observer().count(reason, self.0.slot.peer());
    }

    /// Removes and returns the timer of the connection's last response, or returns a new timer if
    /// there is none.
    pub(crate) fn take_timer(&self) -> MovingTimer {
        std::mem::take(&mut self.0.timer.lock())
    }

    /// Keeps `timer`, so that the next response of the connection reuses it.
    pub(crate) fn keep_timer(&self, timer: MovingTimer) {
        *self.0.timer.lock() = timer;
    }

    /// Returns whether the proxy is shutting down.
    pub(crate) fn is_draining(&self) -> bool {
        self.0.shutdown.phase() > Phase::Serving
    }

    /// Waits until the proxy has reached the shutdown phase `phase`. If the proxy no longer exists,
    /// every phase up to `Cut` counts as reached.
    pub(crate) async fn reached(&self, phase: Phase) {
        self.0.shutdown.clone().reached(phase).await;
    }
}
