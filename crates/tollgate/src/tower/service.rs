//! The service: asks the limiter, calls the inner service or refuses, writes header fields.
//!
//! It calls the limiter twice for each request: `start` before the inner service, `finish` after.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tollgate_core::policy::Ambiguity;
use tollgate_core::{Evaluation, Limit, Store};

use super::admitted::Admitted;
use super::body::Body;
use super::extensions::{MatchedRules, PeerFrom, Refused};
use super::extract::{Fields, attributes};
use super::in_flight::InFlight;
use crate::decision::Decision;
use crate::limiter::{DecisionSource, Limiter, Started};
use crate::refusal::Refusal;
use crate::shed::ShedDecision;
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
        // The instance that was polled ready serves this request; its clone serves the next one.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let limiter = Arc::clone(&self.limiter);
        let peer = (self.peer_from)(request.extensions()).map(|peer| peer.ip());
        let with_rules = self.with_rules;
        let span = limiter.tracer().serve(request.headers(), || span_name(request.method()));
        // The future takes the request as a whole and moves it once, to the service: moving its
        // parts would copy them at every step.
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

/// The name of a request's span: its method. The target may contain private data.
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
    // Clients can invent methods: the number of names must stay small.
    if known.contains(method) { method.to_string().into() } else { "HTTP".into() }
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
