//! Connections that continue in another protocol after a request was answered.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::in_flight::InFlight;

/// Marks a response after which the connection continues in another protocol. The server puts this
/// mark into the response's extensions. The request then keeps its permits and reservations until
/// the [`WhileUpgraded`] of this mark is dropped.
#[derive(Clone, Debug)]
pub struct Upgraded(Weak<Mutex<InFlight>>);

/// A guard that the server must keep as long as the upgraded connection is open.
#[derive(Debug)]
pub struct WhileUpgraded {
    _holds: Arc<Mutex<InFlight>>,
}

/// Returns a mark for the response, and a guard that the server must keep until the connection
/// ends. Both have no effect if the response does not pass through the layer.
#[must_use]
pub fn upgraded() -> (Upgraded, WhileUpgraded) {
    let holds = Arc::new(Mutex::new(InFlight::nothing()));
    (Upgraded(Arc::downgrade(&holds)), WhileUpgraded { _holds: holds })
}

impl Upgraded {
    /// Hands the permits and reservations of the request over to the guard. If the guard was
    /// dropped already, ends the permits and reservations now.
    pub(super) fn hold(&self, in_flight: InFlight) {
        if let Some(holds) = self.0.upgrade() {
            *holds.lock() = in_flight;
        }
    }
}
