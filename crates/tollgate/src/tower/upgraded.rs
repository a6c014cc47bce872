//! Connections that continue in another protocol after their request was answered.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::in_flight::InFlight;

/// Marks a response after which the connection continues in another protocol. The server puts it
/// into the response's extensions: the request then keeps its permits and reservations until the
/// [`WhileUpgraded`] is dropped.
#[derive(Clone, Debug)]
pub struct Upgraded(Weak<Mutex<InFlight>>);

/// A guard that the server keeps as long as the upgraded connection is open.
#[derive(Debug)]
pub struct WhileUpgraded {
    _holds: Arc<Mutex<InFlight>>,
}

/// Returns a mark for the response, and a guard to keep until the connection ends. They have no
/// effect if no layer is in between.
#[must_use]
pub fn upgraded() -> (Upgraded, WhileUpgraded) {
    let holds = Arc::new(Mutex::new(InFlight::nothing()));
    (Upgraded(Arc::downgrade(&holds)), WhileUpgraded { _holds: holds })
}

impl Upgraded {
    /// Hands over the permits and reservations of the request. Ends them now if the connection has
    /// ended already.
    pub(super) fn hold(&self, in_flight: InFlight) {
        if let Some(holds) = self.0.upgrade() {
            *holds.lock() = in_flight;
        }
    }
}
