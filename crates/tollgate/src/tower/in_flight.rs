//! What a request holds while it runs.

use std::sync::Arc;

use tollgate_core::Store;

use super::background;
use crate::limiter::Limiter;
use crate::receipt::Receipt;

/// The leases of a request in flight, given back when this is dropped: at the end of the answer's
/// body, when the client is gone, or when the service panics.
pub(super) struct InFlight(Option<Box<dyn FnOnce() + Send + Sync>>);

impl InFlight {
    /// Holds nothing.
    pub(super) const fn nothing() -> Self {
        Self(None)
    }

    /// Holds `leases` of `limiter`.
    pub(super) fn new<S: Store + 'static>(limiter: Arc<Limiter<S>>, leases: Receipt) -> Self {
        if leases.is_empty() {
            return Self(None);
        }
        Self(Some(Box::new(move || give_back(limiter, leases))))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(give_back) = self.0.take() {
            give_back();
        }
    }
}

/// Gives back what `receipt` proves without making anyone wait.
pub(super) fn give_back<S: Store + 'static>(limiter: Arc<Limiter<S>>, receipt: Receipt) {
    // A store that has no answer keeps the charge; a lease then ends by its expiry.
    background::finish(async move {
        let _ = limiter.refund(receipt).await;
    });
}
