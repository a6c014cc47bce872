//! Costs that the response reports: reserved while it is sent, settled at its end.

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
use crate::decision::Settlement;
use crate::limiter::Limiter;
use crate::receipt::Receipt;

use watch::Watch;
pub(super) use watch::{is_json, value_at};

/// The reservation of a request while it runs. It is extended, and settled once: at the end of the
/// response body, when the body breaks, when the client disconnects or when the service fails. The
/// cost is the cost that the response has reported by then; for each meter without a report, the
/// reserved amount is charged.
pub(super) struct Metering {
    watch: Option<Watch>,
    /// The task that extends the reservation. `None` outside of a runtime, where the reservation
    /// expires.
    holding: Option<AbortHandle>,
    settle: Option<Box<dyn FnOnce(Cost) + Send + Sync>>,
    reserved: Arc<Receipt>,
    /// What the response means for the charges; they remain until it is known.
    settlement: Settlement,
}

/// The cost of the request, as far as the response has reported it.
enum Cost {
    Measured(Watch, Settlement),
    Free,
}

impl Metering {
    /// Meters a request that arrived at `arrived`.
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
        // If the store does not answer, the reservation expires, as its limits say.
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

    /// Whether a meter reads the body, so the response must not be compressed.
    pub(super) fn reads_body(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::reads_body)
    }

    /// Whether `settlement` releases the whole reservation.
    pub(super) fn is_free(&self, settlement: Settlement) -> bool {
        self.reserved.is_free(settlement)
    }

    /// Reads the header fields of the response, which means `settlement` for the charges.
    pub(super) fn answered(&mut self, settlement: Settlement, headers: &HeaderMap) {
        self.settlement = settlement;
        if let Some(watch) = &mut self.watch {
            watch.answered(headers);
        }
    }

    /// Reads a part of the response body.
    pub(super) fn saw(&mut self, data: &[u8]) {
        if let Some(watch) = &mut self.watch {
            watch.saw(data);
        }
    }

    /// Releases the reservation, for a response that is free.
    pub(super) fn release(mut self) {
        self.end(Cost::Free);
    }

    fn end(&mut self, cost: Cost) {
        // An extension that reaches the store after the end finds nothing to extend.
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
