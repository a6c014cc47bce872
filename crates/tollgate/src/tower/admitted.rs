//! An admitted request, from the decision to the response.

use std::sync::Arc;

use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use tollgate_core::Store;
use tollgate_core::policy::answers::RefundPolicy;

use super::body::Body;
use super::extensions::{RequestIncomplete, UpstreamFailed};
use super::in_flight::InFlight;
use super::meter::Metering;
use super::pending_charge::PendingCharge;
use super::upgraded::Upgraded;
use crate::decision::{Decision, Settlement};
use crate::headers;
use crate::limiter::Limiter;
use crate::shed::SampleOutcome;

/// A request that was admitted and is being served.
pub(super) struct Admitted<S: Store + 'static> {
    decision: Decision,
    charge: PendingCharge<S>,
    in_flight: InFlight,
}

impl<S: Store + 'static> Admitted<S> {
    /// Keeps the permits and reservations of `decision` and `in_flight` until the request ends.
    pub(super) fn new(
        limiter: &Arc<Limiter<S>>,
        mut decision: Decision,
        mut in_flight: InFlight,
    ) -> Self {
        if let Some(receipt) = decision.receipt.take() {
            let (counted, permits) = receipt.split_permits();
            decision.receipt = Some(counted);
            in_flight.hold(limiter, permits);
        }
        if let Some(reserved) = decision.reserved.take() {
            // The evaluation has the time at which the request arrived.
            in_flight.meter(Metering::new(limiter, reserved, decision.evaluation.now));
        }
        let charge = PendingCharge::new(limiter, decision.pending.take());
        Self { decision, charge, in_flight }
    }

    /// Prepares the request for the service, which begins now. If the response reports the cost,
    /// the request asks for a response that is not compressed.
    pub(super) fn begin(&mut self, headers: &mut HeaderMap) {
        let limiter = self.charge.limiter();
        self.in_flight.begins(|| limiter.now());
        if self.in_flight.metering().is_some_and(|metering| metering.reads_body()) {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
    }

    /// Records the load that the service's response shows.
    pub(super) fn answered<B, E>(&self, answered: &Result<Response<B>, E>) {
        self.in_flight.answered(|| self.charge.limiter().now(), outcome(answered));
    }

    /// Charges or refunds the request according to the response, and returns the response with the
    /// limiter's header fields. Permits and reservations are held until the end of its body.
    pub(super) fn finish<B>(mut self, mut response: Response<B>) -> Response<Body<B>> {
        let settlement = settlement(&self.decision, &response);
        match self.in_flight.metering() {
            Some(metering) if metering.is_free(settlement) => self.in_flight.release_reserved(),
            Some(metering) => metering.answered(settlement, response.headers()),
            None => {}
        }
        let limiter = Arc::clone(self.charge.limiter());
        limiter.finish(&mut self.decision, &mut self.charge.pending, settlement);
        if let Some(upgraded) = response.extensions_mut().remove::<Upgraded>() {
            upgraded.hold(std::mem::replace(&mut self.in_flight, InFlight::nothing()));
        }
        let profiles = &self.decision.policy.answers().headers;
        headers::write(profiles, &self.decision.evaluation, response.headers_mut());
        response.map(|body| Body::service(body, self.in_flight))
    }
}

/// The load that a response shows.
fn outcome<B, E>(answered: &Result<Response<B>, E>) -> SampleOutcome {
    let overloaded =
        [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
    match answered {
        Ok(response) if !overloaded.contains(&response.status()) => SampleOutcome::Served,
        Ok(_) | Err(_) => SampleOutcome::Overloaded,
    }
}

/// Returns what the response means for the charges of its request.
fn settlement<B>(decision: &Decision, response: &Response<B>) -> Settlement {
    if response.extensions().get::<RequestIncomplete>().is_some() {
        return Settlement::Charged;
    }
    let upstream_failed = response.extensions().get::<UpstreamFailed>().is_some();
    let refund_upstream_failure = decision.policy.answers().refund_upstream_failure;
    if upstream_failed && refund_upstream_failure == RefundPolicy::Refund {
        return Settlement::Free;
    }
    decision.settlement(response.status().as_u16())
}
