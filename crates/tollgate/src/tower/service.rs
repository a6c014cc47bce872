//! The tower service that the layer creates. The service reads the request's attributes, asks the
//! limiter for a decision, and calls the inner service or refuses the request. When the response is
//! known, the service settles the charges and writes the header fields of the response.
//!
//! The service calls the limiter twice for each request: `start` before the inner service, and
//! `finish` after the inner service.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use tollgate_core::attributes::Field;
use tollgate_core::policy::answers::RefundPolicy;
use tollgate_core::policy::{Ambiguity, JsonPointer};
use tollgate_core::{CertificateName, Evaluation, Headers, Limit, RequestAttributes, Store};

use super::body::Body;
use super::extensions::{
    ApplicationValues, JsonBody, MatchedRules, PeerFrom, Refused, RequestIncomplete, TlsClient,
    UnreadBody, UpstreamFailed,
};
use super::in_flight::InFlight;
use super::meter::{Metering, value_at};
use super::pending_charge::PendingCharge;
use super::upgraded::Upgraded;
use crate::decision::{Decision, Settlement};
use crate::limiter::{DecisionSource, Limiter, Started};
use crate::refusal::Refusal;
use crate::shed::{SampleOutcome, ShedDecision};
use crate::{headers, problem, status, trace};

/// A service behind a [`Limiter`].
pub struct Service<Inner, S> {
    inner: Inner,
    limiter: Arc<Limiter<S>>,
    peer_from: PeerFrom,
    with_rules: bool,
}

impl<Inner, S> Service<Inner, S> {
    pub(super) fn new(
        inner: Inner,
        limiter: Arc<Limiter<S>>,
        peer_from: PeerFrom,
        with_rules: bool,
    ) -> Self {
        Self { inner, limiter, peer_from, with_rules }
    }
}

type Answer<B, E> = Pin<Box<dyn Future<Output = Result<Response<Body<B>>, E>> + Send>>;

impl<Inner, S, In, Out> tower_service::Service<Request<In>> for Service<Inner, S>
where
    Inner: tower_service::Service<Request<In>, Response = Response<Out>> + Clone + Send + 'static,
    Inner::Future: Send,
    Inner::Error: Send,
    S: Store + 'static,
    In: Send + 'static,
    Out: Send + 'static,
{
    type Response = Response<Body<Out>>;
    type Error = Inner::Error;
    type Future = Answer<Out, Inner::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<In>) -> Self::Future {
        // The inner service that was polled ready must serve this request. A clone replaces it for
        // the next request.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let limiter = Arc::clone(&self.limiter);
        let peer = (self.peer_from)(request.extensions()).map(|peer| peer.ip());
        let with_rules = self.with_rules;
        let span = limiter.tracer().serve(request.headers(), || span_name(request.method()));
        // The future takes the request as a whole and moves it once, to the inner service. Moving
        // the parts of the request separately would copy them at every step.
        Box::pin(span.run(async move {
            let started = {
                let fields = Fields::of(&request);
                let attributes = attributes(&request, &fields, peer);
                limiter.start(&attributes, |permits| InFlight::new(&limiter, permits))
            };
            let (in_flight, decision) = match started.await {
                Started::Status(status) => return Ok(answer_status(status)),
                Started::Ambiguous(ambiguity) => {
                    return Ok(refused(refuse_ambiguous(ambiguity), None));
                }
                Started::ShedDecision(shed) => return Ok(refused(answer_shed(&shed), None)),
                Started::Decided(_, decision) if !decision.is_admitted() => {
                    let limit = decision.evaluation.refusals().next();
                    let limit = limit.map(|status| Arc::clone(&status.limit));
                    return Ok(refused(refuse(&decision, request.headers()), limit));
                }
                Started::Decided(in_flight, decision) => (in_flight, decision),
            };
            if with_rules {
                request.extensions_mut().insert(MatchedRules(decision.rules.clone()));
            }
            let mut admitted = Admitted::new(&limiter, decision, in_flight);
            admitted.begin(request.headers_mut());
            let answered = inner.call(request).await;
            admitted.answered(&answered);
            let response = answered?;
            trace::record_status(response.status());
            Ok(admitted.finish(response))
        }))
    }
}

/// Returns the name of a request's span: the request's method, or `HTTP` for a method that is not
/// common. The name does not contain the request's target, which may contain private data.
fn span_name(method: &Method) -> Cow<'static, str> {
    let known = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::HEAD,
        Method::PATCH,
        Method::OPTIONS,
    ];
    // Clients can invent methods, but the number of different span names must stay small.
    if known.contains(method) { method.to_string().into() } else { "HTTP".into() }
}

/// References to the data of a request from which subjects are read: its header fields, its body if
/// the server has read the body, the client's certificate, and values that the application read.
pub(crate) struct Fields<'a> {
    headers: &'a HeaderMap,
    body: Option<&'a JsonBody>,
    unread: Option<Ambiguity>,
    application: Option<&'a ApplicationValues>,
    client: Option<&'a TlsClient>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of<B>(request: &'a Request<B>) -> Self {
        let extensions = request.extensions();
        let unread = extensions.get::<UnreadBody>().map(|unread| unread.0);
        let (body, application, client) = (extensions.get(), extensions.get(), extensions.get());
        Self { headers: request.headers(), body, unread, application, client }
    }

    /// Returns the fields of a request that is given as `parts`. `application` has the values of
    /// the subjects that the application read from the request.
    pub(crate) fn of_parts(parts: &'a Parts, application: &'a ApplicationValues) -> Self {
        let (body, client) = (parts.extensions.get(), parts.extensions.get());
        let application = Some(application);
        Self { headers: &parts.headers, body, unread: None, application, client }
    }
}

impl Headers for Fields<'_> {
    fn in_body(&self, pointer: &JsonPointer) -> Option<String> {
        value_at(&self.body?.0, pointer)
    }

    fn unread(&self) -> Option<Ambiguity> {
        self.unread.or_else(|| self.body.map(|_| Ambiguity::BodyValue))
    }

    fn client_certificate(&self, name: CertificateName) -> Option<&str> {
        self.client?.0.name(name)
    }

    fn application_value(&self, name: &str) -> Option<&str> {
        self.application?.get(name)
    }

    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.headers.get_all(name).iter().nth(index).map(|value| value.as_bytes())
    }

    fn field(&self, name: &str) -> Field<'_> {
        let mut lines = self.headers.get_all(name).iter();
        match (lines.next(), lines.next()) {
            (None, _) => Field::Absent,
            (Some(line), None) => Field::Once(line.as_bytes()),
            (Some(_), Some(_)) => Field::Repeated,
        }
    }
}

/// Returns the attributes of a request. The host comes from the request's target or, in the common
/// form of HTTP/1.1, from the `host` header field.
pub(crate) fn attributes<'a, B>(
    request: &'a Request<B>,
    fields: &'a Fields<'a>,
    peer: Option<IpAddr>,
) -> RequestAttributes<'a> {
    attributes_of(request.method(), request.uri(), fields, peer)
}

/// Returns the attributes of a request, like [`attributes`], from the parts of the request.
pub(crate) fn attributes_of<'a>(
    method: &'a Method,
    target: &'a Uri,
    fields: &'a Fields<'a>,
    peer: Option<IpAddr>,
) -> RequestAttributes<'a> {
    let host = target.host().or_else(|| fields.headers.get(HOST)?.to_str().ok());
    let (path, query) = (target.path(), target.query());
    RequestAttributes { method: method.as_str(), path, query, host, peer, headers: fields }
}

/// A request that was admitted and is being served.
pub(crate) struct Admitted<S: Store + 'static> {
    decision: Decision,
    charge: PendingCharge<S>,
    in_flight: InFlight,
}

impl<S: Store + 'static> Admitted<S> {
    /// Moves the permits and reservations of `decision` into `in_flight`, which holds them until
    /// the request ends.
    pub(crate) fn new(
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
            // The evaluation's time is the time at which the request arrived.
            in_flight.meter(Metering::new(limiter, reserved, decision.evaluation.now));
        }
        let charge = PendingCharge::new(limiter, decision.pending.take());
        Self { decision, charge, in_flight }
    }

    /// Prepares the request for the service, which begins to serve the request now. If a meter
    /// reads the response body, sets the header field in `headers` that asks the service not to
    /// compress the response.
    pub(super) fn begin(&mut self, headers: &mut HeaderMap) {
        let limiter = self.charge.limiter();
        self.in_flight.begins(|| limiter.now());
        if self.in_flight.metering().is_some_and(|metering| metering.reads_body()) {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
    }

    /// Records for load shedding whether the response shows that the service is overloaded.
    pub(super) fn answered<B, E>(&self, answered: &Result<Response<B>, E>) {
        self.in_flight.answered(|| self.charge.limiter().now(), outcome(answered));
    }

    /// Charges or refunds the request according to the response, and returns the response with the
    /// limiter's header fields. The returned body holds the permits and reservations until its end.
    pub(super) fn finish<B>(mut self, mut response: Response<B>) -> Response<Body<B>> {
        let settlement = settlement(&self.decision, &response);
        self.settle(settlement);
        if let Some(metering) = self.in_flight.metering() {
            metering.answered(response.headers());
        }
        if let Some(upgraded) = response.extensions_mut().remove::<Upgraded>() {
            upgraded.hold(std::mem::replace(&mut self.in_flight, InFlight::nothing()));
        }
        let profiles = &self.decision.policy.answers().headers;
        headers::write(profiles, &self.decision.evaluation, response.headers_mut());
        response.map(|body| Body::service(body, self.in_flight))
    }
}

impl<S: Store + 'static> Admitted<S> {
    /// Returns the decision on the request.
    pub(crate) const fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Charges or refunds the request after a response with the effect `settlement`. The permits
    /// and reservations stay held until this value is dropped.
    pub(crate) fn settle(&mut self, settlement: Settlement) {
        match self.in_flight.metering() {
            Some(metering) if metering.is_free(settlement) => self.in_flight.release_reserved(),
            Some(metering) => metering.settle_as(settlement),
            None => {}
        }
        let limiter = Arc::clone(self.charge.limiter());
        limiter.finish(&mut self.decision, &mut self.charge.pending, settlement);
    }
}

/// Returns whether a response shows that the service is overloaded: the statuses 502, 503 and 504,
/// and errors of the service.
fn outcome<B, E>(answered: &Result<Response<B>, E>) -> SampleOutcome {
    let overloaded =
        [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
    match answered {
        Ok(response) if !overloaded.contains(&response.status()) => SampleOutcome::Served,
        Ok(_) | Err(_) => SampleOutcome::Overloaded,
    }
}

/// Returns the effect of a response on the charges of its request: whether charges are kept or
/// refunded.
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

fn answer_status<B, E>(status: Result<Evaluation, E>) -> Response<Body<B>> {
    match status {
        Ok(evaluation) => answer(StatusCode::OK, "application/json", status::to_json(&evaluation)),
        Err(_) => store_unavailable(),
    }
}

fn refuse<B>(decision: &Decision, request: &HeaderMap) -> Response<Body<B>> {
    if let DecisionSource::Failure(_) = decision.source {
        return store_unavailable();
    }
    let mut refusal = Refusal::of(decision, request.get(ACCEPT).map(HeaderValue::as_bytes));
    let body = std::mem::take(&mut refusal.body);
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let mut response = answer(status, refusal.content_type, body);
    let fields = response.headers_mut();
    headers::write(&decision.policy.answers().headers, &decision.evaluation, fields);
    refusal.write_fields(fields);
    response
}

fn refused<B>(mut response: Response<B>, limit: Option<Arc<Limit>>) -> Response<B> {
    response.extensions_mut().insert(Refused { limit });
    response
}

fn refuse_ambiguous<B>(ambiguity: Ambiguity) -> Response<Body<B>> {
    let body = problem::ambiguous(ambiguity);
    let status = StatusCode::from_u16(ambiguity.status()).unwrap_or(StatusCode::BAD_REQUEST);
    answer(status, problem::CONTENT_TYPE, body)
}

fn answer_shed<B>(shed: &ShedDecision) -> Response<Body<B>> {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    trace::record("tollgate.shed_by", shed.cause.name());
    let mut response = answer(status, problem::CONTENT_TYPE, problem::shed(shed));
    let seconds = shed.retry_after.as_secs_ceil().max(1);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn store_unavailable<B>() -> Response<Body<B>> {
    let body = problem::store_unavailable();
    answer(StatusCode::SERVICE_UNAVAILABLE, problem::CONTENT_TYPE, body)
}

pub(crate) fn answer<B>(
    status: StatusCode,
    media_type: &'static str,
    body: String,
) -> Response<Body<B>> {
    let mut response = Response::new(Body::limiter(body));
    trace::record_status(status);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

impl<Inner: Clone, S> Clone for Service<Inner, S> {
    fn clone(&self) -> Self {
        let (limiter, peer_from, with_rules) =
            (Arc::clone(&self.limiter), self.peer_from, self.with_rules);
        Self { inner: self.inner.clone(), limiter, peer_from, with_rules }
    }
}

impl<Inner, S> fmt::Debug for Service<Inner, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}
