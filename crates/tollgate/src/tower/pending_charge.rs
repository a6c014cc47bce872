//! A charge that is made when the response is known.

use std::sync::Arc;

use tollgate_core::Store;

use crate::decision::Pending;
use crate::limiter::Limiter;

/// The charge of a request, to be made when the response of the request is known. The value may be
/// dropped earlier, because the client disconnected or the service failed. In this case the request
/// is charged, because the service has worked for the request.
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
