//! The permits and reservations of a request in flight.

use std::fmt;
use std::sync::Arc;

use tokio::task::AbortHandle;
use tollgate_core::{Store, Timestamp};

use super::meter::Metering;
use super::renewal;
use crate::limiter::{AdmissionPermits, Limiter};
use crate::receipt::Receipt;
use crate::shed::{InFlightSlot, SampleOutcome};

/// Everything that a request holds while it runs: its permits of concurrency limits, which are
/// renewed until this value is dropped, its permit on the node, and the amount that is reserved
/// until the cost of the request is known. Dropping this value releases the permits, and releases
/// or settles the reserved amount. The value is dropped at the end of the response body or of the
/// upgraded connection, when the client disconnects, or when the service panics.
///
/// This value is one word wide, because it moves with the response, and most requests hold nothing.
pub(crate) struct InFlight(Option<Box<Resources>>);

#[derive(Default)]
struct Resources {
    permits: Vec<HeldPermits>,
    slot: Option<InFlightSlot>,
    metering: Option<Metering>,
}

/// The permits of one receipt, which are released when this value is dropped.
struct HeldPermits {
    /// The renewal task. `None` outside of a runtime, where the permits are not renewed and expire.
    renewing: Option<AbortHandle>,
    release: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl InFlight {
    /// Creates a value that holds no permit and no reservation.
    pub(crate) const fn nothing() -> Self {
        Self(None)
    }

    /// Creates a value that holds the permits of an admitted request.
    pub(super) fn new<S: Store + 'static>(
        limiter: &Arc<Limiter<S>>,
        permits: AdmissionPermits,
    ) -> Self {
        let mut in_flight = Self::nothing();
        if let Some(slot) = permits.slot {
            in_flight.resources().slot = Some(slot);
        }
        if let Some(fleet) = permits.fleet {
            in_flight.hold(limiter, fleet);
        }
        in_flight
    }

    /// Adds the permits of the receipt `permits`, and starts to renew them.
    pub(super) fn hold<S: Store + 'static>(&mut self, limiter: &Arc<Limiter<S>>, permits: Receipt) {
        let Some(lease) = permits.shortest_permit_ttl() else { return };
        let (limiter, permits) = (Arc::clone(limiter), Arc::new(permits));
        let renewing = {
            let (limiter, permits) = (Arc::clone(&limiter), Arc::clone(&permits));
            renewal::until_aborted(lease, move || {
                let (limiter, permits) = (Arc::clone(&limiter), Arc::clone(&permits));
                async move {
                    let _ = limiter.renew(&permits).await;
                }
            })
        };
        // If the store does not answer, the permits expire.
        let release = Box::new(move || {
            let background = Arc::clone(&limiter);
            background.in_background(async move {
                let _ = limiter.refund_shared(limiter.now(), &permits).await;
            });
        });
        self.resources().permits.push(HeldPermits { renewing, release: Some(release) });
    }

    /// Adds `metering`, the reservation and the meter of the response.
    pub(super) fn meter(&mut self, metering: Metering) {
        self.resources().metering = Some(metering);
    }

    /// Returns the reservation and the meter of the response, or `None` if no cost of the request
    /// is metered.
    pub(super) fn metering(&mut self) -> Option<&mut Metering> {
        self.0.as_mut()?.metering.as_mut()
    }

    /// Releases the reserved amount, because the response is free.
    pub(super) fn release_reserved(&mut self) {
        if let Some(metering) = self.0.as_mut().and_then(|resources| resources.metering.take()) {
            metering.release();
        }
    }

    /// Records for load shedding that the service begins the request. Calls `now` only if the
    /// request has a permit on the node.
    pub(super) fn begins(&mut self, now: impl FnOnce() -> Timestamp) {
        if let Some(slot) = self.0.as_mut().and_then(|resources| resources.slot.as_mut()) {
            slot.begins(now());
        }
    }

    /// Records for load shedding whether the service was overloaded. Calls `now` only if the
    /// request has a permit on the node.
    pub(super) fn answered(&self, now: impl FnOnce() -> Timestamp, outcome: SampleOutcome) {
        if let Some(slot) = self.0.as_ref().and_then(|resources| resources.slot.as_ref()) {
            slot.answered(now(), outcome);
        }
    }

    fn resources(&mut self) -> &mut Resources {
        self.0.get_or_insert_default()
    }
}

impl Drop for HeldPermits {
    fn drop(&mut self) {
        // If a renewal reaches the store after the release, the renewal finds no permit and creates
        // no permit.
        self.renewing.take().inspect(AbortHandle::abort);
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permits = self.0.as_ref().map_or(0, |resources| resources.permits.len());
        f.debug_struct("InFlight").field("permits", &permits).finish_non_exhaustive()
    }
}
