//! A charge that waits for the request's answer.

use std::sync::Arc;

use tollgate_core::{Store, Timestamp};

use crate::limiter::{Limiter, Pending};

/// What a request in flight costs once it is answered. Dropped before, because the client is gone
/// or the service failed, it is charged: the service was put to work.
pub(super) struct OnCompletion<S: Store + 'static> {
    limiter: Arc<Limiter<S>>,
    pending: Option<Pending>,
}

impl<S: Store + 'static> OnCompletion<S> {
    pub(super) fn new(limiter: &Arc<Limiter<S>>, pending: Option<Pending>) -> Self {
        Self { limiter: Arc::clone(limiter), pending }
    }

    /// Charges it without making anyone wait.
    pub(super) fn charge(&mut self, now: Timestamp) {
        if let Some(pending) = self.pending.take() {
            let limiter = Arc::clone(&self.limiter);
            self.limiter.afterwards(async move {
                // Whoever observes the limiter hears of it; a charge that may have been counted is
                // not sent again.
                let _ = limiter.complete_at(now, pending).await;
            });
        }
    }

    /// The answer is free.
    pub(super) fn waive(&mut self) {
        self.pending = None;
    }
}

impl<S: Store + 'static> Drop for OnCompletion<S> {
    fn drop(&mut self) {
        if self.pending.is_some() {
            self.charge(self.limiter.now());
        }
    }
}
