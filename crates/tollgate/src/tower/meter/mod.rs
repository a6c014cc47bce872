//! Costs that the answer tells: what is reserved of them while it goes by, and settled at its end.

mod events;
mod follower;
mod watch;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use tokio::task::AbortHandle;
use tollgate_core::{Store, Timestamp};

use super::renewal;
use crate::limiter::Limiter;
use crate::receipt::Receipt;

use watch::Watch;
pub(super) use watch::{is_json, value_at};

/// What is reserved for a request while it runs, held on to, and settled once: at the end of the
/// answer's body, when it breaks, when the client is gone or when the service fails. What the answer
/// told until then is what it cost; what it did not tell costs what was reserved.
pub(super) struct Metering {
    watch: Option<Watch>,
    /// None outside of a runtime, where it ends when its limits say.
    holding: Option<AbortHandle>,
    settle: Option<Box<dyn FnOnce(Cost) + Send + Sync>>,
}

/// What the request cost.
enum Cost {
    Measured(Watch),
    Free,
}

impl Metering {
    /// Of a request that arrived at `arrived`.
    pub(super) fn new<S: Store + 'static>(
        limiter: &Arc<Limiter<S>>,
        reserved: Receipt,
        arrived: Timestamp,
    ) -> Self {
        let watch = Some(Watch::new(reserved.meters()));
        let reserved = Arc::new(reserved);
        let holding = reserved.shortest_reservation().and_then(|hold| {
            let (limiter, reserved) = (Arc::clone(limiter), Arc::clone(&reserved));
            renewal::until_aborted(hold, move || {
                let (limiter, reserved) = (Arc::clone(&limiter), Arc::clone(&reserved));
                async move {
                    let _ = limiter.hold_on(&reserved).await;
                }
            })
        });
        let limiter = Arc::clone(limiter);
        // For want of an answer of the store it runs out, as its limits say.
        let settle = Box::new(move |cost| {
            let now = limiter.now();
            let after = Arc::clone(&limiter);
            after.afterwards(async move {
                let _ = match cost {
                    Cost::Free => limiter.give_back(now, &reserved).await,
                    Cost::Measured(watch) => {
                        let measured = |meter: &_| watch.cost(meter, now.since(arrived));
                        limiter.settle_measured(now, &reserved, measured).await
                    }
                };
            });
        });
        Self { watch, holding, settle: Some(settle) }
    }

    /// Whether the answer must come as it is, and not compressed.
    pub(super) fn reads_body(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::reads_body)
    }

    /// The answer has begun.
    pub(super) fn answered(&mut self, headers: &HeaderMap) {
        if let Some(watch) = &mut self.watch {
            watch.answered(headers);
        }
    }

    /// The answer's body goes on.
    pub(super) fn saw(&mut self, data: &[u8]) {
        if let Some(watch) = &mut self.watch {
            watch.saw(data);
        }
    }

    /// The answer is free.
    pub(super) fn waive(mut self) {
        self.end(Cost::Free);
    }

    fn end(&mut self, cost: Cost) {
        // An extension under way that comes after the end finds nothing to extend.
        self.holding.take().inspect(AbortHandle::abort);
        if let Some(settle) = self.settle.take() {
            settle(cost);
        }
    }
}

impl Drop for Metering {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            self.end(Cost::Measured(watch));
        }
    }
}

impl fmt::Debug for Metering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metering").field("watch", &self.watch).finish_non_exhaustive()
    }
}
