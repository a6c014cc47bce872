//! Routes calls to the services, and checks the caller's token.

mod draining_body;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::service::Service as HyperService;
use tokio::time::timeout;
use tollgate::Limiter;
use tollgate::model::Store;
use tollgate::trace;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_health::pb::health_server::{HealthServer, SERVICE_NAME as HEALTH};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

use super::health::Health;
use super::proto::{FILES, RateLimitResponse, SERVICE_NAME as RATE_LIMIT};
use super::service::RateLimits;
use super::unary::{self, MAX_MESSAGE_BYTES, UnaryBody};
use crate::access::Access;
use crate::listener_counters::ListenerCounters;
use draining_body::DrainingBody;
use tollgate::observe::Histogram;
use tollgate_http::Shutdown;

const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
const REFLECTION_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";
const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const IDENTITY: &str = "identity";

/// The services of the listener, for one connection.
pub(super) struct Routes<S>(Arc<Connected<S>>);

/// The services of the listener, with the state of one connection.
struct Connected<S> {
    shared: Arc<Shared<S>>,
    caller: RemoteCaller,
    shutdown: Shutdown,
}

/// The client of a connection, and the counters of its listener.
#[derive(Clone, Debug)]
pub(super) struct RemoteCaller {
    pub(super) peer: Option<SocketAddr>,
    pub(super) counters: Arc<ListenerCounters>,
}

/// The services of the listener, for all connections.
pub(super) struct Shared<S> {
    rate_limits: RateLimits<S>,
    reflection: Option<[Reflection; 2]>,
    access: Access,
    /// The longest time that a call may take, from the head of the request to the response.
    deadline: Duration,
    /// The recorded durations of charges, from the complete message to the decision.
    pub(super) latency: Arc<Histogram>,
}

type Reflection = BoxCloneSyncService<Request<DrainingBody>, Response<Body>, Infallible>;

impl<S: Store + 'static> Shared<S> {
    pub(super) fn new(limiter: Arc<Limiter<S>>, access: Access, deadline: Duration) -> Self {
        Self {
            rate_limits: RateLimits(limiter),
            reflection: reflection().ok(),
            access,
            deadline,
            latency: Arc::default(),
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        caller: &RemoteCaller,
        shutdown: &Shutdown,
    ) -> Response<UnaryBody> {
        // Nearly all calls are calls of this method, so they take the short path.
        if request.uri().path() != SHOULD_RATE_LIMIT {
            let mut answer = Box::pin(self.answer_other(request, caller, shutdown)).await;
            set_resource_exhausted(&mut answer);
            return answer.map(UnaryBody::Other);
        }
        let limiter = &self.rate_limits.0;
        let span = limiter.tracer().serve(request.headers(), || SHOULD_RATE_LIMIT[1..].into());
        let called = async {
            let answered = self.should_rate_limit(request, caller).await;
            if let Err(status) = &answered {
                trace::record("rpc.grpc.status_code", i64::from(i32::from(status.code())));
                trace::record_failure(status.code().description());
            }
            answered
        };
        let answered = span.run(called).await;
        match answered {
            Ok(answer) => unary::answered(&answer),
            Err(status) => status.into_http().map(UnaryBody::Other),
        }
    }

    async fn should_rate_limit(
        &self,
        request: Request<Incoming>,
        caller: &RemoteCaller,
    ) -> Result<RateLimitResponse, Status> {
        self.admit(request.headers(), caller)?;
        if let Some(encoding) = request.headers().get(GRPC_ENCODING)
            && encoding != IDENTITY
        {
            let wrong =
                format!("the message encoding {encoding:?} is not supported: use {IDENTITY:?}");
            return Err(Status::unimplemented(wrong));
        }
        let parsed = unary::message(request.into_body()).await?;
        let began = Instant::now();
        let answered = self.rate_limits.answer(&parsed).await;
        if !matches!(&answered, Err(status) if status.code() == Code::InvalidArgument) {
            self.latency.observe(began.elapsed());
        }
        answered
    }

    async fn answer_other(
        &self,
        request: Request<Incoming>,
        caller: &RemoteCaller,
        shutdown: &Shutdown,
    ) -> Response<Body> {
        let path = request.uri().path();
        // A health check needs no token, because a load balancer should not need the right to
        // charge limits. `Watch` needs a token, because its stream lasts until the process drains
        // and keeps the connection busy: otherwise, clients without a token could occupy every
        // connection slot.
        if path != HEALTH_CHECK
            && let Err(status) = self.admit(request.headers(), caller)
        {
            return status.into_http();
        }
        let service = path.split('/').nth(1).unwrap_or_default();
        let version = match service {
            HEALTH => {
                let mut health = HealthServer::new(Health(shutdown.clone()))
                    .max_decoding_message_size(MAX_MESSAGE_BYTES);
                return known(health.call(request).await);
            }
            REFLECTION => 0,
            REFLECTION_ALPHA => 1,
            RATE_LIMIT => return unknown_method(path).into_http(),
            other => return unknown(other).into_http(),
        };
        let Some(reflection) = &self.reflection else { return unknown(service).into_http() };
        // A caller that keeps its stream open must not delay the end of the process.
        let request = request.map(|body| DrainingBody::new(body, shutdown.clone()));
        known(reflection[version].clone().oneshot(request).await)
    }

    fn admit(&self, headers: &HeaderMap, caller: &RemoteCaller) -> Result<(), Status> {
        if self.access.admits(token(headers)) {
            return Ok(());
        }
        if headers.contains_key(AUTHORIZATION) {
            caller.counters.count_wrong_token(caller.peer);
        }
        Err(Status::unauthenticated(
            "this listener requires a token: send it as `authorization: Bearer TOKEN`",
        ))
    }
}

/// Creates the reflection services, for both versions of the protocol.
fn reflection() -> Result<[Reflection; 2], tonic_reflection::server::Error> {
    let files = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILES)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let v1 = files().build_v1()?.max_decoding_message_size(MAX_MESSAGE_BYTES);
    let alpha = files().build_v1alpha()?.max_decoding_message_size(MAX_MESSAGE_BYTES);
    Ok([BoxCloneSyncService::new(v1), BoxCloneSyncService::new(alpha)])
}

impl<S: Store + 'static> Routes<S> {
    pub(super) fn new(shared: Arc<Shared<S>>, caller: RemoteCaller, shutdown: Shutdown) -> Self {
        Self(Arc::new(Connected { shared, caller, shutdown }))
    }
}

impl<S> Clone for Routes<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store + 'static> HyperService<Request<Incoming>> for Routes<S> {
    type Response = Response<UnaryBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<UnaryBody>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let connected = Arc::clone(&self.0);
        Box::pin(async move {
            let Connected { shared, caller, shutdown } = &*connected;
            let deadline = shared.deadline;
            let mut answer = pin!(shared.answer(request, caller, shutdown));
            // Most calls are answered without waiting, and need no timer.
            if let Some(answer) = answer.as_mut().now_or_never() {
                return Ok(answer);
            }
            Ok(timeout(deadline, answer).await.unwrap_or_else(|_| {
                let within = deadline.as_secs();
                let late = format!("the call took longer than {within} s");
                Status::deadline_exceeded(late).into_http().map(UnaryBody::Other)
            }))
        })
    }
}

fn known(answer: Result<Response<Body>, Infallible>) -> Response<Body> {
    let Ok(answer) = answer;
    answer
}

/// Replaces tonic's status code for a message that is too large, `OUT_OF_RANGE`, by the code that
/// gRPC defines, `RESOURCE_EXHAUSTED`.
fn set_resource_exhausted(answer: &mut Response<Body>) {
    if let Some(code) = answer.headers_mut().get_mut(GRPC_STATUS)
        && Code::from_bytes(code.as_bytes()) == Code::OutOfRange
    {
        *code = HeaderValue::from(Code::ResourceExhausted as i32);
    }
}

fn unknown_method(path: &str) -> Status {
    Status::unimplemented(format!("unknown method {path:?}: call {SHOULD_RATE_LIMIT:?}"))
}

fn unknown(service: &str) -> Status {
    Status::unimplemented(format!("unknown service {service:?}: call {RATE_LIMIT:?}"))
}

/// Returns the caller's token. Returns `None` if the request has several tokens, because it is
/// unknown which of them a proxy in front of this listener has checked.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = only.as_bytes().split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}
