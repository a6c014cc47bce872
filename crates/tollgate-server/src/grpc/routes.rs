//! Which service a call is for, and whether its caller may enter.

mod ending;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, Request, Response};
use hyper::body::Incoming;
use tokio::time::timeout;
use tollgate::Limiter;
use tollgate::core::Store;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_health::pb::health_server::{HealthServer, SERVICE_NAME as HEALTH};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

use super::health::Health;
use super::proto::{FILES, RateLimitServiceServer, SERVICE_NAME as RATE_LIMIT};
use super::service::{MAX_MESSAGE_BYTES, RateLimits};
use crate::access::Access;
use crate::shutdown::Shutdown;
use ending::Ending;

const REFLECTION: &str = "grpc.reflection.v1.ServerReflection";
const REFLECTION_ALPHA: &str = "grpc.reflection.v1alpha.ServerReflection";
const GRPC_STATUS: &str = "grpc-status";

/// The services behind the door, on one connection.
pub(super) struct Routes<S> {
    shared: Arc<Shared<S>>,
    shutdown: Shutdown,
}

/// The services behind the door.
pub(super) struct Shared<S> {
    rate_limits: RateLimitServiceServer<RateLimits<S>>,
    reflection: Option<[Reflection; 2]>,
    access: Access,
    /// How long a call's message may take, and its answer with it.
    deadline: Duration,
}

type Reflection = BoxCloneSyncService<Request<Ending>, Response<Body>, Infallible>;
type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

impl<S: Store + 'static> Shared<S> {
    pub(super) fn new(limiter: Arc<Limiter<S>>, access: Access, deadline: Duration) -> Self {
        let rate_limits = RateLimitServiceServer::new(RateLimits(limiter))
            .max_decoding_message_size(MAX_MESSAGE_BYTES);
        Self { rate_limits, reflection: reflection().ok(), access, deadline }
    }
}

/// What callers can ask about the services themselves, in both versions of the asking.
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
    pub(super) const fn new(shared: Arc<Shared<S>>, shutdown: Shutdown) -> Self {
        Self { shared, shutdown }
    }

    fn route(&self, request: Request<Incoming>) -> Answering {
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        if service == HEALTH {
            // Whoever balances load need not be who may ask.
            let mut health = HealthServer::new(Health(self.shutdown.clone()))
                .max_decoding_message_size(MAX_MESSAGE_BYTES);
            return answering(health.call(request));
        }
        if !self.shared.access.admits(token(request.headers())) {
            return refused(Status::unauthenticated(
                "this door asks for a token: send it as `authorization: Bearer TOKEN`",
            ));
        }
        let version = match service {
            RATE_LIMIT => return answering(self.shared.rate_limits.clone().call(request)),
            REFLECTION => 0,
            REFLECTION_ALPHA => 1,
            other => return refused(unknown(other)),
        };
        let Some(reflection) = &self.shared.reflection else { return refused(unknown(service)) };
        // A caller that stays for ever must not keep the process from ending.
        let request = request.map(|body| Ending::new(body, self.shutdown.clone()));
        answering(reflection[version].clone().oneshot(request))
    }
}

impl<S> Clone for Routes<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), shutdown: self.shutdown.clone() }
    }
}

impl<S: Store + 'static> Service<Request<Incoming>> for Routes<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let (answering, deadline) = (self.route(request), self.shared.deadline);
        Box::pin(async move {
            let mut answer = timeout(deadline, answering).await.unwrap_or_else(|_| {
                let within = deadline.as_secs();
                Status::deadline_exceeded(format!("the call took longer than {within} s"))
                    .into_http()
            });
            // The protocol's own code for a message that is too large, which tonic knows otherwise.
            if let Some(code) = answer.headers_mut().get_mut(GRPC_STATUS)
                && Code::from_bytes(code.as_bytes()) == Code::OutOfRange
            {
                *code = HeaderValue::from(Code::ResourceExhausted as i32);
            }
            Ok(answer)
        })
    }
}

fn answering(
    answer: impl Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
) -> Answering {
    Box::pin(async move {
        let Ok(answer) = answer.await;
        answer
    })
}

fn refused(status: Status) -> Answering {
    Box::pin(std::future::ready(status.into_http()))
}

fn unknown(service: &str) -> Status {
    Status::unimplemented(format!("there is no service {service:?}; ask for {RATE_LIMIT:?}"))
}

/// The caller's token. Of several, none: which one a proxy before it checked is not known.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = only.as_bytes().split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}
