//! `/v1/authorize`: decisions for the sub-requests of another proxy. The proxy waits for the
//! decision before it forwards its client's request.

mod sub_request;

use std::sync::Arc;
use std::time::Instant;

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tollgate::limiter::Decision;
use tollgate::limiter::DecisionSource;
use tollgate::model::policy::{ChargeOn, Forwarding, PlannedCharge};
use tollgate::model::{Algorithm, Store};
use tollgate::refusal::Refusal;
use tollgate::{DecisionRequest, Limiter, headers, problem};

use super::app::App;
use super::problem::{Kind, Problem};
use super::respond::{self, Response};
use crate::access::Access;
use crate::http_connection::Peer;
use sub_request::SubRequest;

/// The header field with the listener's token in a sub-request. The field `authorization` contains
/// the credentials of the proxy's client.
const TOKEN: HeaderName = HeaderName::from_static("x-tollgate-token");

/// The header field with the receipt of an admitted request. A service that detects that the
/// request should not have been charged can refund it.
const RECEIPT: HeaderName = HeaderName::from_static("tollgate-receipt");

/// The header field of every decision and of every refusal of a sub-request, so a proxy can
/// distinguish a refusal with the status 502, 503 or 504 from a node that it did not reach. The
/// value is `admitted` or `refused`. An invalid sub-request, for example one with another method or
/// with a head that is too large, does not reach this route: its response has a status of 4xx and
/// not this field.
const DECISION: HeaderName = HeaderName::from_static("tollgate-decision");

/// Decides on the request that a sub-request describes. If that request is admitted, returns 200
/// without a body. If it is refused, or cannot be decided, returns the response that the proxy has
/// to send to its client.
pub(super) async fn authorize<S: Store + 'static>(
    app: &App<S>,
    peer: Option<Peer>,
    fields: &HeaderMap,
) -> Response {
    let began = Instant::now();
    let answered = decide(app, peer, fields).await;
    if answered.is_ok() {
        app.options.latency.observe(began.elapsed());
    }
    let mut response = answered.unwrap_or_else(|problem| respond::refuse(&problem));
    let decision = if response.status() == StatusCode::OK { "admitted" } else { "refused" };
    response.headers_mut().insert(DECISION, HeaderValue::from_static(decision));
    response
}

async fn decide<S: Store + 'static>(
    app: &App<S>,
    peer: Option<Peer>,
    fields: &HeaderMap,
) -> Result<Response, Problem> {
    let token = fields.get(&TOKEN).map(HeaderValue::as_bytes);
    let policy = app.limiter.policy();
    check_may_query_others(&app.options.access, token, peer, policy.forwarding())?;
    let sub_request = SubRequest::read(fields)
        .map_err(|error| Problem::new(Kind::InvalidRequest, error.to_string()))?;
    let now = app.limiter.now();
    let mut plan = app.limiter.plan_at(now, &policy, &sub_request.facts());
    if let Some(ambiguity) = plan.ambiguity {
        app.limiter.report_ambiguous(now, ambiguity);
        return Err(Problem::new(Kind::InvalidRequest, ambiguity.detail()));
    }
    // Permits are not taken: a permit would be held until it expires, because the proxy does not
    // report the end of the request.
    plan.enforced.retain(is_no_lease);
    plan.shadowed.retain(is_no_lease);
    // The proxy does not report the response, so limits that are otherwise charged on completion
    // are charged now.
    let request = DecisionRequest::new(now, &policy, plan);
    let mut request = DecisionRequest { charge: ChargeOn::Arrival, ..request };
    let decision = match app.limiter.decide_at_once(&mut request) {
        Some(decision) => decision,
        None => app.limiter.decide_or_release(request).await,
    };
    Ok(answer(&app.limiter, decision, fields))
}

/// Returns whether a sub-request carries a token that the listener does not have.
pub(super) fn has_wrong_token(access: &Access, fields: &HeaderMap) -> bool {
    let token = fields.get(&TOKEN).map(HeaderValue::as_bytes);
    token.is_some() && !access.admits(token)
}

fn is_no_lease(planned: &PlannedCharge) -> bool {
    !matches!(planned.limit.algorithm(), Algorithm::Concurrency(_))
}

/// Checks that a sub-request is trusted. If the listener has tokens, a trusted sub-request carries
/// one of these tokens. If the listener has no tokens, a trusted sub-request comes from this
/// machine or from a proxy that the policy trusts.
///
/// # Errors
/// A [`Problem`] with the requirement that the sub-request does not meet.
fn check_may_query_others(
    access: &Access,
    token: Option<&[u8]>,
    peer: Option<Peer>,
    forwarding: &Forwarding,
) -> Result<(), Problem> {
    let refused = |detail| Err(Problem::new(Kind::UntrustedProxy, detail));
    match (access, peer) {
        (Access::Tokens(_), _) if access.admits(token) => Ok(()),
        (Access::Tokens(_), _) => refused(
            "the proxy has to send `x-tollgate-token: TOKEN` with one of the listener's tokens",
        ),
        (Access::Open, Some(Peer(None))) => Ok(()),
        (Access::Open, Some(Peer(Some(address)))) => {
            let address = address.ip().to_canonical();
            let is_trusted = || forwarding.trusted.iter().any(|network| network.contains(address));
            if address.is_loopback() || is_trusted() {
                return Ok(());
            }
            refused("the address of the proxy is not in the policy's `trusted_proxies`")
        }
        (Access::Open, None) => {
            refused("the address of the proxy is unknown: configure tokens for this listener")
        }
    }
}

fn answer<S: Store + 'static>(
    limiter: &Arc<Limiter<S>>,
    mut decision: Decision,
    request: &HeaderMap,
) -> Response {
    // A limit that counts units can have a candidate that takes permits.
    limiter.release_permits_of(&mut decision);
    if !decision.is_admitted() {
        return refuse(&decision, request);
    }
    let mut response = Response::default();
    let fields = response.headers_mut();
    headers::write(&decision.policy.answers().headers, &decision.evaluation, fields);
    if let Some(receipt) = decision.receipt.filter(|receipt| !receipt.is_empty()) {
        let receipt = limiter.seal(receipt, decision.evaluation.now);
        fields.extend(HeaderValue::try_from(receipt).map(|receipt| (RECEIPT, receipt)));
    }
    response
}

/// Returns the response to a refused request. `request` are the header fields of the sub-request,
/// among which the proxy passes on fields of its client.
fn refuse(decision: &Decision, request: &HeaderMap) -> Response {
    if let DecisionSource::Failure(_) = decision.source {
        let (status, body) = (StatusCode::SERVICE_UNAVAILABLE, problem::store_unavailable());
        return respond::of(status, problem::CONTENT_TYPE, body);
    }
    let mut refusal = Refusal::of(decision, request.get(ACCEPT).map(HeaderValue::as_bytes));
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let body = std::mem::take(&mut refusal.body);
    let mut response = respond::of(status, refusal.content_type, body);
    let fields = response.headers_mut();
    headers::write(&decision.policy.answers().headers, &decision.evaluation, fields);
    refusal.write_fields(fields);
    response
}

#[cfg(test)]
mod tests {
    use tollgate::model::policy::Network;

    use super::*;
    use crate::access::Tokens;

    const RIGHT: &str = "0123456789abcdef";

    fn is_allowed(access: &Access, token: Option<&str>, peer: Option<Peer>) -> bool {
        let trusted = vec![Network::parse("10.0.0.0/8").unwrap()];
        let forwarding = Forwarding { trusted, ..Forwarding::default() };
        check_may_query_others(access, token.map(str::as_bytes), peer, &forwarding).is_ok()
    }

    fn at(address: &str) -> Option<Peer> {
        Some(Peer(Some(address.parse().unwrap())))
    }

    #[test]
    fn without_tokens_this_machine_and_trusted_proxies_are_believed() {
        for (peer, is_believed) in [
            (Some(Peer(None)), true),
            (at("127.0.0.1:1"), true),
            (at("127.9.9.9:1"), true),
            (at("[::1]:1"), true),
            (at("[::ffff:127.0.0.1]:1"), true),
            (at("10.1.2.3:1"), true),
            (at("[::ffff:10.1.2.3]:1"), true),
            (at("192.0.2.1:1"), false),
            (at("[2001:db8::1]:1"), false),
            (None, false),
        ] {
            assert_eq!(is_allowed(&Access::Open, None, peer), is_believed, "{peer:?}");
            assert_eq!(is_allowed(&Access::Open, Some(RIGHT), peer), is_believed, "{peer:?}");
        }
    }

    #[test]
    fn with_tokens_nobody_is_believed_who_shows_none() {
        let access = Access::Tokens(Tokens::parse(RIGHT).unwrap());
        for peer in [None, Some(Peer(None)), at("127.0.0.1:1"), at("10.0.0.1:1"), at("192.0.2.1:1")]
        {
            assert!(is_allowed(&access, Some(RIGHT), peer), "{peer:?}");
            for wrong in [None, Some(""), Some("0123456789abcdee"), Some("Bearer 0123456789abcdef")]
            {
                assert!(!is_allowed(&access, wrong, peer), "{peer:?} {wrong:?}");
            }
        }
    }
}
