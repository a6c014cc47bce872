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
use tollgate_core::policy::answers::{Answers, Refund};
use tollgate_core::{Facts, Store};

use super::body::Body;
use super::extract::{Fields, facts};
use super::in_flight::InFlight;
use super::marks::{PeerFrom, UpstreamFailed};
use super::meter::Metering;
use super::on_completion::OnCompletion;
use super::upgraded::Upgraded;
use crate::limiter::{Decision, Limiter, Settlement, Source};
use crate::shed::{Outcome, Shed};
use crate::{headers, problem, standing, trace};

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
                let facts = facts(&request, &fields, peer);
                if asks_for_standings(&limiter, &facts) {
                    Asked::Standings(Box::pin(limiter.standings(&facts)))
                } else {
                    let (now, policy) = (limiter.now(), limiter.policy());
                    let plan = limiter.plan_at(now, &policy, &facts);
                    let (place, queue) = (limiter.enter(now, &policy, plan.priority), plan.queue());
                    let decision = limiter.check_metered_at(now, &policy, plan, queue);
                    Asked::Service(place, Box::pin(decision))
                }
            };
            let (place, decision) = match asked {
                Asked::Standings(standings) => return Ok(answer_standings(standings.await)),
                Asked::Service(place, decision) => (place.await, decision),
            };
            let in_flight = match place {
                Ok(place) => InFlight::new(&limiter, place),
                Err(shed) => return Ok(answer_shed(&shed)),
            };
            let decision = decision.await;
            if !decision.is_admitted() {
                return Ok(refuse(&decision));
            }
            let mut charged = Charged::new(&limiter, decision, in_flight);
            charged.in_flight.begins(|| limiter.now());
            charged.ask_plainly(request.headers_mut());
            let answered = inner.call(request).await;
            charged.in_flight.answered(|| limiter.now(), outcome(&answered));
            let response = answered?;
            charged.settle(&response);
            trace::answered(response.status());
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

enum Asked<Standings, Enter, Check> {
    Standings(Standings),
    Service(Enter, Check),
}

fn asks_for_standings<S: Store>(limiter: &Limiter<S>, facts: &Facts<'_>) -> bool {
    limiter.policy().answers().standing_path.as_deref() == Some(facts.path)
        && facts.method == Method::GET.as_str()
}

fn answer_standings<B, E>(standings: Result<tollgate_core::Verdict, E>) -> Response<Body<B>> {
    match standings {
        Ok(verdict) => answer(StatusCode::OK, "application/json", standing::to_json(&verdict)),
        Err(_) => store_unavailable(),
    }
}

fn refuse<B>(decision: &Decision) -> Response<Body<B>> {
    if let Source::Failure(_) = decision.source {
        return store_unavailable();
    }
    let answers = decision.policy.answers();
    let status =
        StatusCode::from_u16(answers.refuse_status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let (media_type, body) = problem::refusal(&answers.headers, &decision.verdict, status.as_u16());
    let mut response = answer(status, media_type, body);
    headers::write(&answers.headers, &decision.verdict, response.headers_mut());
    response
}

fn answer_shed<B>(shed: &Shed) -> Response<Body<B>> {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    trace::record("tollgate.shed_by", shed.cause.name());
    let mut response = answer(status, problem::CONTENT_TYPE, problem::shed(shed));
    let seconds = shed.retry_after.as_secs_ceil().max(1);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// What an answer says of the service's load.
fn outcome<B, E>(answered: &Result<Response<B>, E>) -> Outcome {
    let overloaded =
        [StatusCode::BAD_GATEWAY, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT];
    match answered {
        Ok(response) if !overloaded.contains(&response.status()) => Outcome::Served,
        Ok(_) | Err(_) => Outcome::Overloaded,
    }
}

fn store_unavailable<B>() -> Response<Body<B>> {
    let body = problem::store_unavailable();
    answer(StatusCode::SERVICE_UNAVAILABLE, problem::CONTENT_TYPE, body)
}

fn answer<B>(status: StatusCode, media_type: &'static str, body: String) -> Response<Body<B>> {
    let mut response = Response::new(Body::limiter(body));
    trace::answered(status);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// An admitted request that the service is at work on.
struct Charged<S: Store + 'static> {
    limiter: Arc<Limiter<S>>,
    decision: Decision,
    on_completion: OnCompletion<S>,
    in_flight: InFlight,
}

impl<S: Store + 'static> Charged<S> {
    fn new(limiter: &Arc<Limiter<S>>, mut decision: Decision, mut in_flight: InFlight) -> Self {
        if let Some(receipt) = decision.receipt.take() {
            let (counted, leases) = receipt.split_leases();
            decision.receipt = Some(counted);
            in_flight.hold(limiter, leases);
        }
        if let Some(reserved) = decision.reserved.take() {
            // What the verdict is of is when the request arrived.
            in_flight.meter(Metering::new(limiter, reserved, decision.verdict.now));
        }
        let on_completion = OnCompletion::new(limiter, decision.pending.take());
        Self { limiter: Arc::clone(limiter), decision, on_completion, in_flight }
    }

    /// Asks for an answer that can be read, where its cost stands in it.
    fn ask_plainly(&mut self, headers: &mut HeaderMap) {
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
            (Settlement::Free, _) => self.in_flight.forgive(),
        }
        if (self.decision.charge, settlement) == (ChargeOn::Arrival, Settlement::Charged) {
            return;
        }
        let now = self.limiter.now();
        match settlement {
            Settlement::Charged => self.on_completion.charge(now),
            Settlement::Free => {
                self.on_completion.forgive();
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
        headers::write(profiles, &self.decision.verdict, response.headers_mut());
        response.map(|body| Body::service(body, self.in_flight))
    }
}

/// Whether the policy lets a request be free that is answered so.
fn settlement<B>(answers: &Answers, response: &Response<B>) -> Settlement {
    let upstream_failed = response.extensions().get::<UpstreamFailed>().is_some();
    let is_free = answers.refund_statuses.contains(&response.status().as_u16())
        || upstream_failed && answers.refund_upstream_failure == Refund::GiveBack;
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
