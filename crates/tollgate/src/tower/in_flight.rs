//! What a request holds while it runs.

use std::fmt;
use std::sync::Arc;

use tokio::task::AbortHandle;
use tollgate_core::{Store, Timestamp};

use super::meter::Metering;
use super::renewal;
use crate::limiter::{Limiter, Place};
use crate::receipt::Receipt;
use crate::shed::{Outcome, Permit};

/// What a request holds while it runs: its leases, renewed while this lives, its place in the node,
/// and what is reserved until its cost is known. All of it is given back or settled when this is
/// dropped, at the end of the answer's body or of the connection that it was upgraded to, when the
/// client is gone, or when the service panics.
///
/// One word wide, for it travels with the answer, which is moved often; most requests hold nothing.
pub(super) struct InFlight(Option<Box<Holds>>);

#[derive(Default)]
struct Holds {
    leases: Vec<Held>,
    permit: Option<Permit>,
    metering: Option<Metering>,
}

/// Leases of one receipt.
struct Held {
    /// None outside of a runtime, where leases end by their expiry.
    renewing: Option<AbortHandle>,
    give_back: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl InFlight {
    /// Holds nothing.
    pub(super) const fn nothing() -> Self {
        Self(None)
    }

    /// Holds the `place` of a request that was taken on.
    pub(super) fn new<S: Store + 'static>(limiter: &Arc<Limiter<S>>, place: Place) -> Self {
        let mut in_flight = Self::nothing();
        if let Some(permit) = place.permit {
            in_flight.holds().permit = Some(permit);
        }
        if let Some(fleet) = place.fleet {
            in_flight.hold(limiter, fleet);
        }
        in_flight
    }

    /// Holds `leases` of `limiter` too.
    pub(super) fn hold<S: Store + 'static>(&mut self, limiter: &Arc<Limiter<S>>, leases: Receipt) {
        let Some(lease) = leases.shortest_lease() else { return };
        let (limiter, leases) = (Arc::clone(limiter), Arc::new(leases));
        let renewing = {
            let (limiter, leases) = (Arc::clone(&limiter), Arc::clone(&leases));
            renewal::until_aborted(lease, move || {
                let (limiter, leases) = (Arc::clone(&limiter), Arc::clone(&leases));
                async move {
                    let _ = limiter.renew(&leases).await;
                }
            })
        };
        // A store that has no answer keeps them until they expire.
        let give_back = Box::new(move || {
            let after = Arc::clone(&limiter);
            after.afterwards(async move {
                let _ = limiter.give_back(limiter.now(), &leases).await;
            });
        });
        self.holds().leases.push(Held { renewing, give_back: Some(give_back) });
    }

    /// Meters the answer too.
    pub(super) fn meter(&mut self, metering: Metering) {
        self.holds().metering = Some(metering);
    }

    /// What meters the answer, if anything does.
    pub(super) fn metering(&mut self) -> Option<&mut Metering> {
        self.0.as_mut()?.metering.as_mut()
    }

    /// The answer is free: what is reserved is released.
    pub(super) fn forgive(&mut self) {
        if let Some(metering) = self.0.as_mut().and_then(|holds| holds.metering.take()) {
            metering.forgive();
        }
    }

    /// The service gets the request `now`.
    pub(super) fn begins(&mut self, now: impl FnOnce() -> Timestamp) {
        if let Some(permit) = self.0.as_mut().and_then(|holds| holds.permit.as_mut()) {
            permit.begins(now());
        }
    }

    /// The service answered `now`.
    pub(super) fn answered(&self, now: impl FnOnce() -> Timestamp, outcome: Outcome) {
        if let Some(permit) = self.0.as_ref().and_then(|holds| holds.permit.as_ref()) {
            permit.answered(now(), outcome);
        }
    }

    fn holds(&mut self) -> &mut Holds {
        self.0.get_or_insert_default()
    }
}

impl Drop for Held {
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
        let leases = self.0.as_ref().map_or(0, |holds| holds.leases.len());
        f.debug_struct("InFlight").field("leases", &leases).finish_non_exhaustive()
    }
}
