//! What a request holds while it runs.

use std::fmt;
use std::sync::Arc;

use tokio::task::AbortHandle;
use tollgate_core::{Store, Timestamp};

use super::meter::Metering;
use super::renewal;
use crate::limiter::{Limiter, Place};
use crate::receipt::Receipt;
use crate::shed::{InFlightSlot, SampleOutcome};

/// What a request holds while it runs: its leases, renewed while this lives, its place in the node,
/// and what is reserved until its cost is known. All of it is given back or settled when this is
/// dropped, at the end of the answer's body or of the connection that it was upgraded to, when the
/// client is gone, or when the service panics.
///
/// One word wide, for it travels with the answer, which is moved often; most requests hold nothing.
pub(super) struct InFlight(Option<Box<Resources>>);

#[derive(Default)]
struct Resources {
    permits: Vec<HeldPermits>,
    slot: Option<InFlightSlot>,
    metering: Option<Metering>,
}

/// Leases of one receipt.
struct HeldPermits {
    /// None outside of a runtime, where leases end by their expiry.
    renewing: Option<AbortHandle>,
    give_back: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl InFlight {
    /// Resources nothing.
    pub(super) const fn nothing() -> Self {
        Self(None)
    }

    /// Resources the `place` of a request that was taken on.
    pub(super) fn new<S: Store + 'static>(limiter: &Arc<Limiter<S>>, place: Place) -> Self {
        let mut in_flight = Self::nothing();
        if let Some(slot) = place.slot {
            in_flight.resources().slot = Some(slot);
        }
        if let Some(fleet) = place.fleet {
            in_flight.hold(limiter, fleet);
        }
        in_flight
    }

    /// Resources `permits` of `limiter` too.
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
        // A store that has no answer keeps them until they expire.
        let give_back = Box::new(move || {
            let after = Arc::clone(&limiter);
            after.afterwards(async move {
                let _ = limiter.give_back(limiter.now(), &permits).await;
            });
        });
        self.resources().permits.push(HeldPermits { renewing, give_back: Some(give_back) });
    }

    /// Meters the answer too.
    pub(super) fn meter(&mut self, metering: Metering) {
        self.resources().metering = Some(metering);
    }

    /// What meters the answer, if anything does.
    pub(super) fn metering(&mut self) -> Option<&mut Metering> {
        self.0.as_mut()?.metering.as_mut()
    }

    /// The answer is free: what is reserved is released.
    pub(super) fn waive(&mut self) {
        if let Some(metering) = self.0.as_mut().and_then(|resources| resources.metering.take()) {
            metering.waive();
        }
    }

    /// The service gets the request `now`.
    pub(super) fn begins(&mut self, now: impl FnOnce() -> Timestamp) {
        if let Some(slot) = self.0.as_mut().and_then(|resources| resources.slot.as_mut()) {
            slot.begins(now());
        }
    }

    /// The service answered `now`.
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
        // A renewal under way that comes after the end finds no lease, and makes none.
        self.renewing.take().inspect(AbortHandle::abort);
        if let Some(give_back) = self.give_back.take() {
            give_back();
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permits = self.0.as_ref().map_or(0, |resources| resources.permits.len());
        f.debug_struct("InFlight").field("leases", &permits).finish_non_exhaustive()
    }
}
