//! Handles the requests of the HTTP/JSON listener.
//!
//! Requests are routed by a `match`, because axum's router takes 5,200 instructions between a
//! connection and the handler of a request, and this module takes 2,800, of 50,000 for a check over
//! HTTP/2. The router clones its routes, boxes the handler and its body, and inserts the matched path
//! and its parameters into each request. Both numbers are from callgrind's profiles of the listener
//! benchmark, in which throttlecrab-server uses the router. The audience, the kind of the body and
//! the allowed hosts of a route are also needed before its body is read.

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use hyper::body::Body;
use tollgate::Limiter;
use tollgate::model::Store;
use tollgate::trace;
use tower::{ServiceExt, service_fn};

use super::app::App;
use super::body::BodyLimits;
use super::hosts::AdmittedHost;
use super::idempotency::{Fingerprint, Key, ResponseOrigin};
use super::openapi::openapi;
use super::options::HttpOptions;
use super::prefer::Detail;
use super::problem::{Kind, Problem};
use super::respond::{self, Answer, Response};
use super::route::{BodyKind, Route, RouteError};
use super::simulate::{MAX_SIMULATION_BYTES, SIMULATION_BODY_TIMEOUT};
use super::{auth, authorize, body, health, hosts, json};
use crate::dashboard::{self, AssetLookup, Dashboard};
use crate::http_connection::Peer;
use crate::listener_counters::ListenerCounters;
use tollgate_http::Shutdown;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Returns the routes of the HTTP/JSON listener over `limiter`, to merge into another axum server.
///
/// If `options` require tokens, decisions require a token. `/healthz`, `/readyz` and
/// `/openapi.json` never require a token. Without tokens, `/v1/authorize` needs a [`Peer`] in the
/// extensions of the request to determine whether the request is trusted. `/readyz` reports a
/// draining node as not ready only if a [`Shutdown`] is in the extensions, too.
///
/// Without tokens, the [`Peer`] and the field `authorization` also separate the idempotency keys of
/// different callers. Requests without a [`Peer`] count as requests of this machine: their keys are
/// separate only if their fields `authorization` differ, and one caller can use up all keys. If
/// other machines can reach the server, insert a [`Peer`] into each request.
pub fn router<S: Store + 'static>(limiter: Arc<Limiter<S>>, options: HttpOptions) -> Router {
    let app = App::new(limiter, options);
    Router::new().fallback_service(service_fn(move |request: Request<axum::body::Body>| {
        let peer = request.extensions().get().copied();
        let shutdown = request.extensions().get().cloned();
        let (app, admitted_host) = (Arc::clone(&app), AdmittedHost::default());
        let (certificate, counters) = (None, None);
        let routes = Routes { app, peer, certificate, shutdown, counters, admitted_host };
        let routes = Arc::new(routes);
        async { Ok::<_, Infallible>(routes.answer(request).await) }
    }))
}

/// The routes of the listener, for one connection.
pub(super) struct Routes<S> {
    pub(super) app: Arc<App<S>>,
    pub(super) peer: Option<Peer>,
    /// The fingerprint of the client's certificate, if the client presented one.
    pub(super) certificate: Option<Fingerprint>,
    pub(super) shutdown: Option<Shutdown>,
    pub(super) counters: Option<Arc<ListenerCounters>>,
    /// The host of the connection's first admitted request.
    pub(super) admitted_host: AdmittedHost,
}

impl<S: Store + 'static> Routes<S> {
    /// Returns the response to one request.
    pub(super) async fn answer<B>(self: Arc<Self>, request: Request<B>) -> Response
    where
        B: Body<Data = Bytes>,
    {
        let (head, body) = request.into_parts();
        let answered = match Route::find(&head.method, head.uri.path()) {
            Ok(route) if route.is_traffic() => self.traced(route, &head, body).await,
            Ok(route) => self.execute(route, &head, body).await,
            Err(astray) if astray.is_of_proxies() => Ok(nothing_there(astray)),
            Err(astray) => self.called(None, &head).map(|()| nothing_there(astray)),
        };
        respond::to(&head.method, answered.unwrap_or_else(|problem| respond::refuse(&problem)))
    }

    /// Handles a request within its own span, if requests are traced.
    fn traced<'a, B>(
        &'a self,
        route: Route,
        head: &'a Parts,
        body: B,
    ) -> impl Future<Output = Result<Response, Problem>> + 'a
    where
        B: Body<Data = Bytes> + 'a,
    {
        // Only requests with known paths reach this code, so the number of span names is bounded.
        let name = || format!("{} {}", head.method, head.uri.path()).into();
        let span = self.app.limiter.tracer().serve(&head.headers, name);
        span.run(async move {
            let answered = self.execute(route, head, body).await;
            let status = answered.as_ref().map_or_else(Problem::status, Response::status);
            trace::record_status(status);
            answered
        })
    }

    async fn execute<B>(&self, route: Route, head: &Parts, body: B) -> Result<Response, Problem>
    where
        B: Body<Data = Bytes>,
    {
        let app = &self.app;
        self.called(Some(route), head)?;
        auth::admit(&app.options, route.audience(), &head.headers).inspect_err(|problem| {
            let is_wrong = problem.status() == StatusCode::UNAUTHORIZED;
            if is_wrong && head.headers.contains_key(header::AUTHORIZATION) {
                self.count_wrong_token();
            }
        })?;
        let body = match route.body_kind() {
            BodyKind::Nothing => Bytes::new(),
            BodyKind::Bytes => {
                // A body with this media type can also come from a page of another site, because a
                // browser sends it without a preflight request. Therefore the origin is checked
                // here.
                hosts::expect_own(head)?;
                body::read(&head.headers, body, BodyLimits::SMALL).await?
            }
            BodyKind::Json => {
                body::expect_json(&head.headers)?;
                body::read(&head.headers, body, BodyLimits::SMALL).await?
            }
            BodyKind::Log => return Box::pin(self.simulate(head, body)).await,
            BodyKind::Rows => {
                let (query, actor) =
                    (head.uri.query().unwrap_or_default(), app.actor(&head.headers));
                let imported = app.import_tenants(query, &head.headers, body, actor);
                return Ok(respond::with(Box::pin(imported).await));
            }
        };
        if matches!(route, Route::Check) {
            return self.once(route, head, body).await;
        }
        // Boxed, because nearly all requests are checks, and every request would have a larger
        // future.
        Box::pin(self.carry_out_other(route, head, body)).await
    }

    async fn carry_out_other(
        &self,
        route: Route,
        head: &Parts,
        body: Bytes,
    ) -> Result<Response, Problem> {
        let (app, query) = (&self.app, head.uri.query().unwrap_or_default());
        Ok(respond::with(match route {
            Route::Check | Route::CheckBatch | Route::Reserve => {
                return self.once(route, head, body).await;
            }
            Route::Peek => {
                let caller = auth::caller(&app.options, &head.headers);
                app.peek(&body, Detail::preferred(&head.headers), caller).await
            }
            Route::Refund => app.refund(&body).await,
            Route::Extend => app.extend(&body).await,
            Route::Settle => app.settle(&body).await,
            Route::Release => app.release(&body).await,
            Route::LimitStatus => {
                app.limit_status(query, auth::caller(&app.options, &head.headers)).await
            }
            Route::Status => app.status(),
            Route::History => app.history(),
            Route::Policy => app.policy(),
            Route::Rollout => app.set_rollout(&body, &app.actor(&head.headers)),
            Route::Forget
            | Route::Reload
            | Route::SetOverride
            | Route::RemoveOverride
            | Route::SetTenant
            | Route::RemoveTenant => self.change(route, head, body).await,
            Route::Top => app.top(query),
            Route::Subjects => Box::pin(app.subjects(query)).await,
            Route::Overrides => app.overrides(),
            Route::Tenants => app.tenants(query),
            Route::Tenant => app.tenant(head.uri.path()),
            Route::Audit => app.audit(),
            Route::SharedBlob => described(),
            Route::Authorize => {
                if authorize::has_wrong_token(&app.options.access, &head.headers) {
                    self.count_wrong_token();
                }
                return Ok(authorize::authorize(app, self.peer, &head.headers).await);
            }
            Route::Descriptors => return self.descriptors(head, body).await,
            Route::Metrics => return app.metrics(),
            Route::Simulate => app.simulation()?.run(&body).await,
            // This cannot happen, because the body of an import was read as it arrived, above.
            Route::ImportTenants => Err(Problem::new(Kind::Internal, "the import was not read")),
            Route::Dashboard(found) => return self.dashboard(found),
            Route::Live => return Ok(health::live(app)),
            Route::Ready => return health::ready(app, self.shutdown.as_ref()),
        }))
    }

    /// Makes a change for an administrator, in a task of its own.
    async fn change(&self, route: Route, head: &Parts, body: Bytes) -> Answer {
        let (app, uri) = (Arc::clone(&self.app), head.uri.clone());
        let actor = app.actor(&head.headers);
        let change = async move {
            let (path, query) = (uri.path(), uri.query().unwrap_or_default());
            match route {
                Route::Forget => app.forget(query, &actor).await,
                Route::Reload => app.reload(&actor).await,
                Route::SetOverride => app.set_override(&body, &actor).await,
                Route::RemoveOverride => app.remove_override(query, &actor).await,
                Route::SetTenant => app.set_tenant(path, &body, &actor).await,
                Route::RemoveTenant => app.remove_tenant(path, &actor).await,
                // This cannot happen: the caller passes only the routes above.
                _ => Err(Problem::new(Kind::Internal, "the route changes nothing")),
            }
        };
        self.app.in_own_task(change).await
    }

    fn count_wrong_token(&self) {
        if let Some(counters) = &self.counters {
            counters.count_wrong_token(self.peer.and_then(|Peer(address)| address));
        }
    }

    /// Checks that the request uses an allowed name of this listener.
    fn called(&self, route: Option<Route>, head: &Parts) -> Result<(), Problem> {
        match &self.app.options.hosts {
            Some(hosts) if !route.is_some_and(|route| hosts.are_any_for(route)) => {
                hosts.admit(head, &self.admitted_host)
            }
            _ => Ok(()),
        }
    }

    /// Acquires the simulation permit, reads the log, and runs the simulation. Returns a problem at
    /// once if another simulation is running.
    async fn simulate<B>(&self, head: &Parts, body: B) -> Result<Response, Problem>
    where
        B: Body<Data = Bytes>,
    {
        body::expect_json(&head.headers)?;
        let turn = self.app.simulation()?;
        let bound = BodyLimits { bytes: MAX_SIMULATION_BYTES, within: SIMULATION_BODY_TIMEOUT };
        let body = body::read(&head.headers, body, bound).await?;
        Ok(respond::with(turn.run(&body).await))
    }

    fn dashboard(&self, found: AssetLookup) -> Result<Response, Problem> {
        match (self.app.options.dashboard, found) {
            (Dashboard::Disabled, _) | (_, AssetLookup::Missing) => {
                Err(Problem::new(Kind::NotFound, "the dashboard has no such file"))
            }
            (Dashboard::Enabled, found) => Ok(dashboard::answer(found)),
        }
    }

    /// Executes a charge, once for each idempotency key.
    async fn once(&self, route: Route, head: &Parts, body: Bytes) -> Result<Response, Problem> {
        let detail = Detail::preferred(&head.headers);
        let Some(key) = Key::of(&head.headers)? else {
            return Ok(respond::with(self.app.decide(route, &body, detail).await));
        };
        let path = head.uri.path().as_bytes();
        let (app, requested) = (Arc::clone(&self.app), body.clone());
        let execute = || async move { app.decide(route, &requested, detail).await };
        let (cache, access) = (&self.app.idempotency, &self.app.options.access);
        let caller = cache.caller(access, &head.headers, self.certificate, self.peer);
        let answered = cache.once(&self.app.limiter, caller, key, [path, &*body], execute);
        let (answer, origin) = Box::pin(answered).await;
        let mut response = respond::with(answer);
        if origin == ResponseOrigin::Replayed {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        Ok(response)
    }

    /// Calls the gRPC listener's service, in JSON.
    async fn descriptors(&self, head: &Parts, body: Bytes) -> Result<Response, Problem> {
        let mut request = Request::new(axum::body::Body::from(body));
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = head.uri.clone();
        let began = Instant::now();
        let answered = self.app.descriptors.clone().oneshot(request).await;
        let Ok(response) = answered;
        if response.status() != StatusCode::BAD_REQUEST {
            self.app.options.latency.observe(began.elapsed());
        }
        let (head, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await;
        let body = body.map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
        Ok(Response::from_parts(head, Full::new(body)))
    }
}

impl<S: Store + 'static> App<S> {
    /// Executes the charge of a request of `route`, and records its duration if a decision was made.
    async fn decide(&self, route: Route, body: &[u8], detail: Detail) -> Answer {
        let began = Instant::now();
        let answered = match route {
            // Boxed: the larger futures must not make the future of a check larger.
            Route::CheckBatch => Box::pin(self.check_batch(body, detail)).await,
            Route::Reserve => Box::pin(self.reserve(body)).await,
            _ => self.check(body, detail).await,
        };
        if answered.is_ok() {
            self.options.latency.observe(began.elapsed());
        }
        answered
    }
}

fn described() -> Answer {
    static DOCUMENT: LazyLock<Answer> = LazyLock::new(|| Ok(json::write(&openapi())?));
    DOCUMENT.clone()
}

fn nothing_there(astray: RouteError) -> Response {
    let methods = match astray {
        RouteError::UnknownPath => {
            let detail = "unknown path: /openapi.json lists the paths";
            return respond::refuse(&Problem::new(Kind::NotFound, detail));
        }
        RouteError::UnknownMethod(methods) => methods,
    };
    let detail = "the `allow` header field lists the allowed methods";
    let mut response = respond::refuse(&Problem::new(Kind::MethodNotAllowed, detail));
    let methods: Vec<&str> = methods.iter().map(|(method, _)| method.as_str()).collect();
    // Methods consist of letters, so this never fails.
    let allow = HeaderValue::try_from(methods.join(",")).ok();
    response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
    response
}
