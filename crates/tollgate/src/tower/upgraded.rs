//! Connections that go on after their request was answered.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::in_flight::InFlight;

/// Put into a response's extensions by a server that goes on with the connection in another
/// protocol: what the request holds it then holds until the [`WhileUpgraded`] is dropped.
#[derive(Clone, Debug)]
pub struct Upgraded(Weak<Mutex<InFlight>>);

/// Kept by the server for as long as the upgraded connection lives.
#[derive(Debug)]
pub struct WhileUpgraded {
    _holds: Arc<Mutex<InFlight>>,
}

/// A mark for the response, and what to keep until the connection ends. Without the layer in
/// between, they mean nothing.
#[must_use]
pub fn upgraded() -> (Upgraded, WhileUpgraded) {
    let holds = Arc::new(Mutex::new(InFlight::nothing()));
    (Upgraded(Arc::downgrade(&holds)), WhileUpgraded { _holds: holds })
}

impl Upgraded {
    /// Hands over what the request holds. If the connection has ended already, that ends now.
    pub(super) fn hold(&self, in_flight: InFlight) {
        if let Some(holds) = self.0.upgrade() {
            *holds.lock() = in_flight;
        }
    }
}
