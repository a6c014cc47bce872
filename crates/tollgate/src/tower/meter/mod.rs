//! Costs that the response reports. Units are reserved while the response is sent, and settled when
//! the response ends.

mod events;
mod follower;
mod integer;
mod watch;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use tokio::task::AbortHandle;
use tollgate_core::{Store, Timestamp};

use super::renewal;
use crate::decision::Settlement;
use crate::limiter::Limiter;
use crate::receipt::Receipt;

use watch::Watch;
pub(super) use watch::{is_json, value_at};

/// The reservation of a request while the request runs. The reservation is extended repeatedly and
/// settled once: at the end of the response body, when the body breaks off, when the client
/// disconnects or when the service fails. The settlement uses the costs that the response has
/// reported until then. If the response has not reported the cost of a meter, the amount that was
/// reserved for this meter is charged.
pub(super) struct Metering {
    watch: Option<Watch>,
    /// The task that extends the reservation. `None` outside of a runtime, where the reservation
    /// expires.
    holding: Option<AbortHandle>,
    settle: Option<Box<dyn FnOnce(Cost) + Send + Sync>>,
    reserved: Arc<Receipt>,
    /// The effect of the response on the charges. Until the response is known, all charges remain.
    settlement: Settlement,
}

/// The cost with which the reservation is settled.
enum Cost {
    Measured(Watch, Settlement),
    Free,
}

impl Metering {
    /// Creates the metering of a request that arrived at `arrived`.
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
        let (limiter, kept) = (Arc::clone(limiter), Arc::clone(&reserved));
        // If the store does not answer, the reservation expires. The settings of each limit
        // determine whether its units are released or charged.
        let settle = Box::new(move |cost| {
            let now = limiter.now();
            let background = Arc::clone(&limiter);
            background.in_background(async move {
                let _ = match cost {
                    Cost::Free => limiter.refund_shared(now, &reserved).await,
                    Cost::Measured(watch, settlement) => {
                        let measured = |meter: &_| watch.cost(meter, now.since(arrived));
                        limiter.settle_shared(now, &reserved, settlement, measured).await
                    }
                };
            });
        });
        let (settle, settlement) = (Some(settle as _), Settlement::Charged);
        Self { watch, holding, settle, reserved: kept, settlement }
    }

    /// Returns whether a meter reads the body. If so, the response must not be compressed.
    pub(super) fn reads_body(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::reads_body)
    }

    /// Returns whether a response with the effect `settlement` makes the whole reservation free.
    pub(super) fn is_free(&self, settlement: Settlement) -> bool {
        self.reserved.is_free(settlement)
    }

    /// Records the effect `settlement` of the response on the charges.
    pub(super) const fn settle_as(&mut self, settlement: Settlement) {
        self.settlement = settlement;
    }

    /// Reads the header fields of the response.
    pub(super) fn answered(&mut self, headers: &HeaderMap) {
        if let Some(watch) = &mut self.watch {
            watch.answered(headers);
        }
    }

    /// Reads `data`, the next part of the response body.
    pub(super) fn observe(&mut self, data: &[u8]) {
        if let Some(watch) = &mut self.watch {
            watch.observe(data);
        }
    }

    /// Releases the reservation, because the response is free.
    pub(super) fn release(mut self) {
        self.end(Cost::Free);
    }

    fn end(&mut self, cost: Cost) {
        // If an extension reaches the store after the settlement, the extension finds no
        // reservation and has no effect.
        self.holding.take().inspect(AbortHandle::abort);
        if let Some(settle) = self.settle.take() {
            settle(cost);
        }
    }
}

impl Drop for Metering {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            self.end(Cost::Measured(watch, self.settlement));
        }
    }
}

impl fmt::Debug for Metering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metering").field("watch", &self.watch).finish_non_exhaustive()
    }
}
