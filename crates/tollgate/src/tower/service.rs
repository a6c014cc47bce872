//! The service: decide, pass on or refuse, tell, give back.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use tollgate_core::policy::ChargeOn;
use tollgate_core::policy::answers::{RefundPolicy, ResponseSettings};
use tollgate_core::{RequestAttributes, Store};

use super::body::Body;
use super::extensions::{PeerFrom, UpstreamFailed};
use super::extract::{Fields, attributes};
use super::in_flight::InFlight;
use super::meter::Metering;
use super::on_completion::OnCompletion;
use super::upgraded::Upgraded;
use crate::limiter::{Decision, DecisionSource, Limiter, Settlement};
use crate::shed::{SampleOutcome, ShedDecision};
use crate::{headers, problem, status, trace};

/// A service behind a [`Limiter`].
pub struct Service<Inner, S> {
    inner: Inner,
    limiter: Arc<Limiter<S>>,
    peer_from: PeerFrom,
}

impl<Inner, S> Service<Inner, S> {
    pub(super) fn new(inner: Inner, limiter: Arc<Limiter<S>>, peer_from: PeerFrom) -> Self {
        Self { inner, limiter, peer_from }
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
        // The one that was polled ready serves this request; its clone waits for the next.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let limiter = Arc::clone(&self.limiter);
        let peer = (self.peer_from)(request.extensions()).map(|peer| peer.ip());
        let span = limiter.tracer().serve(request.headers(), || span_name(request.method()));
        // The request is moved into the future whole, and out of it only to the service: taken apart
        // and put together it would be copied at every turn.
        Box::pin(span.run(async move {
            let asked = {
                let fields = Fields::of(&request);
                let attributes = attributes(&request, &fields, peer);
                if asks_for_status(&limiter, &attributes) {
                    RequestKind::Status(Box::pin(limiter.statuses(&attributes)))
                } else {
                    let (now, policy) = (limiter.now(), limiter.policy());
                    let plan = limiter.plan_at(now, &policy, &attributes);
                    let (place, queue) = (limiter.enter(now, &policy, plan.priority), plan.queue());
                    let decision = limiter.check_metered_at(now, &policy, plan, queue);
                    RequestKind::Service(place, Box::pin(decision))
                }
            };
            let (place, decision) = match asked {
                RequestKind::Status(statuses) => return Ok(answer_status(statuses.await)),
                RequestKind::Service(place, decision) => (place.await, decision),
            };
            let in_flight = match place {
                Ok(place) => InFlight::new(&limiter, place),
                Err(shed) => return Ok(answer_shed(&shed)),
            };
            let decision = decision.await;
            if !decision.is_admitted() {
                return Ok(refuse(&decision));
            }
            let mut charged = ChargedRequest::new(&limiter, decision, in_flight);
            charged.in_flight.begins(|| limiter.now());
            charged.decide_unmetered(request.headers_mut());
            let answered = inner.call(request).await;
            charged.in_flight.answered(|| limiter.now(), outcome(&answered));
            let response = answered?;
            charged.settle(&response);
            trace::record_status(response.status());
            Ok(charged.answer(response))
        }))
    }
}

/// The method: of the target nothing is told, which may name whom nobody should know.
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
    // Anybody may make up others: names are to stay few.
    if known.contains(method) { method.to_string().into() } else { "HTTP".into() }
}

enum RequestKind<Status, Enter, Check> {
    Status(Status),
    Service(Enter, Check),
}

fn asks_for_status<S: Store>(limiter: &Limiter<S>, attributes: &RequestAttributes<'_>) -> bool {
    limiter.policy().answers().status_path.as_deref() == Some(attributes.path)
        && attributes.method == Method::GET.as_str()
}

fn answer_status<B, E>(statuses: Result<tollgate_core::Evaluation, E>) -> Response<Body<B>> {
    match statuses {
        Ok(evaluation) => answer(StatusCode::OK, "application/json", status::to_json(&evaluation)),
        Err(_) => store_unavailable(),
    }
}

fn refuse<B>(decision: &Decision) -> Response<Body<B>> {
    if let DecisionSource::Failure(_) = decision.source {
        return store_unavailable();
    }
    let answers = decision.policy.answers();
    let status =
        StatusCode::from_u16(answers.refuse_status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let (media_type, body) =
        problem::refusal(&answers.headers, &decision.evaluation, status.as_u16());
    let mut response = answer(status, media_type, body);
    headers::write(&answers.headers, &decision.evaluation, response.headers_mut());
    response
}

fn answer_shed<B>(shed: &ShedDecision) -> Response<Body<B>> {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    trace::record("tollgate.shed_by", shed.cause.name());
    let mut response = answer(status, problem::CONTENT_TYPE, problem::shed(shed));
    let seconds = shed.retry_after.as_secs_ceil().max(1);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// What an answer says of the service's load.
fn outcome<B, E>(answered: &Result<Response<B>, E>) -> SampleOutcome {
    let overloaded =
        [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
    match answered {
        Ok(response) if !overloaded.contains(&response.status()) => SampleOutcome::Served,
        Ok(_) | Err(_) => SampleOutcome::Overloaded,
    }
}

fn store_unavailable<B>() -> Response<Body<B>> {
    let body = problem::store_unavailable();
    answer(StatusCode::SERVICE_UNAVAILABLE, problem::CONTENT_TYPE, body)
}

fn answer<B>(status: StatusCode, media_type: &'static str, body: String) -> Response<Body<B>> {
    let mut response = Response::new(Body::limiter(body));
    trace::record_status(status);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// An admitted request that the service is at work on.
struct ChargedRequest<S: Store + 'static> {
    limiter: Arc<Limiter<S>>,
    decision: Decision,
    on_completion: OnCompletion<S>,
    in_flight: InFlight,
}

impl<S: Store + 'static> ChargedRequest<S> {
    fn new(limiter: &Arc<Limiter<S>>, mut decision: Decision, mut in_flight: InFlight) -> Self {
        if let Some(receipt) = decision.receipt.take() {
            let (counted, permits) = receipt.split_permits();
            decision.receipt = Some(counted);
            in_flight.hold(limiter, permits);
        }
        if let Some(reserved) = decision.reserved.take() {
            // What the evaluation is of is when the request arrived.
            in_flight.meter(Metering::new(limiter, reserved, decision.evaluation.now));
        }
        let on_completion = OnCompletion::new(limiter, decision.pending.take());
        Self { limiter: Arc::clone(limiter), decision, on_completion, in_flight }
    }

    /// Asks for an answer that can be read, where its cost stands in it.
    fn decide_unmetered(&mut self, headers: &mut HeaderMap) {
        if self.in_flight.metering().is_some_and(|metering| metering.reads_body()) {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
    }

    /// Charges what waited for the answer, or gives back what did not, as the answer says.
    fn settle<B>(&mut self, response: &Response<B>) {
        let settlement = settlement(self.decision.policy.answers(), response);
        match (settlement, self.in_flight.metering()) {
            (Settlement::Charged, Some(metering)) => metering.answered(response.headers()),
            (Settlement::Charged, None) => {}
            (Settlement::Free, _) => self.in_flight.waive(),
        }
        if (self.decision.charge, settlement) == (ChargeOn::Arrival, Settlement::Charged) {
            return;
        }
        let now = self.limiter.now();
        match settlement {
            Settlement::Charged => self.on_completion.charge(now),
            Settlement::Free => {
                self.on_completion.waive();
                if let Some(receipt) = self.decision.receipt.take() {
                    let limiter = Arc::clone(&self.limiter);
                    // A store that has no answer keeps the charge.
                    self.limiter.afterwards(async move {
                        let _ = limiter.refund_at(now, receipt).await;
                    });
                }
            }
        }
        self.decision.settle(settlement, now);
    }

    fn answer<B>(mut self, mut response: Response<B>) -> Response<Body<B>> {
        if let Some(upgraded) = response.extensions_mut().remove::<Upgraded>() {
            upgraded.hold(std::mem::replace(&mut self.in_flight, InFlight::nothing()));
        }
        let profiles = &self.decision.policy.answers().headers;
        headers::write(profiles, &self.decision.evaluation, response.headers_mut());
        response.map(|body| Body::service(body, self.in_flight))
    }
}

/// Whether the policy lets a request be free that is answered so.
fn settlement<B>(answers: &ResponseSettings, response: &Response<B>) -> Settlement {
    let upstream_failed = response.extensions().get::<UpstreamFailed>().is_some();
    let is_free = answers.refund_statuses.contains(&response.status().as_u16())
        || upstream_failed && answers.refund_upstream_failure == RefundPolicy::Refund;
    if is_free { Settlement::Free } else { Settlement::Charged }
}

impl<Inner: Clone, S> Clone for Service<Inner, S> {
    fn clone(&self) -> Self {
        let limiter = Arc::clone(&self.limiter);
        Self { inner: self.inner.clone(), limiter, peer_from: self.peer_from }
    }
}

impl<Inner, S> fmt::Debug for Service<Inner, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}
