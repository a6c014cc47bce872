//! A charge that waits for the response.

use std::sync::Arc;

use tollgate_core::Store;

use crate::decision::Pending;
use crate::limiter::Limiter;

/// The charge of a request that is made when its response is known. If it is dropped before,
/// because the client disconnected or the service failed, the request is charged: the service has
/// worked for it.
pub(super) struct PendingCharge<S: Store + 'static> {
    limiter: Arc<Limiter<S>>,
    pub(super) pending: Option<Pending>,
}

impl<S: Store + 'static> PendingCharge<S> {
    pub(super) fn new(limiter: &Arc<Limiter<S>>, pending: Option<Pending>) -> Self {
        Self { limiter: Arc::clone(limiter), pending }
    }

    pub(super) const fn limiter(&self) -> &Arc<Limiter<S>> {
        &self.limiter
    }
}

impl<S: Store + 'static> Drop for PendingCharge<S> {
    fn drop(&mut self) {
        if self.pending.is_some() {
            self.limiter.complete_in_background(self.limiter.now(), self.pending.take());
        }
    }
}
