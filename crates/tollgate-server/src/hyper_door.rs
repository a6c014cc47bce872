//! HTTP on a connection: the parts that all HTTP listeners share.

mod at_once;
mod pulse;
mod taking;
mod turn;

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::http::{Request, Response, Version};
use hyper::body::{Body, Incoming};
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::time::{Instant, sleep_until, timeout};

use crate::connection::{Connection, ConnectionLimits, Door};
use crate::on_wake::OnWake;
use crate::shutdown::{Phase, Shutdown};
use at_once::AtOnce;
use pulse::{Beating, Heard, Parting, Pulse, Silence};
use turn::{Gathered, Turn};

/// The largest head of a request that is accepted, in bytes.
pub const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The most header fields of a request over HTTP/1.1.
pub const MAX_HEADER_FIELDS: usize = 100;

/// The most concurrent streams of an HTTP/2 connection.
pub const MAX_STREAMS: u32 = 256;

/// How long an HTTP/2 client may read nothing of a response that is ready, which is when its flow
/// control window has no room.
pub const LONGEST_UNTAKEN: Duration = Duration::from_secs(20);

/// How long an HTTP/1.1 client, or a client that has not sent anything yet, may still send a
/// request after the process has started to drain. The request may already be in transit, and
/// closing the connection at once would lose it. The response then carries `connection: close`;
/// HTTP/2 has `GOAWAY` for this.
pub const LAST_REQUEST: Duration = Duration::from_secs(1);

/// A listener that serves requests with the service `S`, over HTTP/1.1 and HTTP/2. The first bytes
/// of a connection decide which.
///
/// `S` limits the time of a response and the size of a body.
#[derive(Clone, Debug)]
pub struct HyperDoor<S> {
    service: S,
    holding: Holding,
}

/// The address of the client, as an extension of a request. `None` on a unix domain socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub Option<SocketAddr>);

/// The versions and time limits of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The HTTP versions that are accepted.
    pub versions: HttpVersions,
    /// How long a client may take to send its first byte.
    pub first_byte: Duration,
    /// How long a request's head may take from its first byte to its last.
    pub head: Duration,
    /// How long a connection may be idle, which means without a request.
    pub idle: Duration,
    /// How long an HTTP/2 connection may be silent before a keep-alive ping is sent, and the time
    /// limit for the reply to it.
    pub sign_of_life: Duration,
    /// How long an HTTP/2 client may read nothing of a response that is ready. Then its stream is
    /// reset. At most `idle`.
    pub untaken: Duration,
    /// The age at which a client is asked to open a new connection, plus up to a tenth at random so
    /// clients do not all reconnect at once. Load balancers that balance connections instead of
    /// requests need this to spread the load.
    pub age: Option<Duration>,
    /// How long responses may still take on a connection that has reached its `age`.
    pub farewell: Duration,
}

/// The HTTP versions that are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersions {
    /// HTTP/1.1 and HTTP/2.
    Any,
    /// HTTP/2 only, for gRPC.
    Http2,
}

impl Holding {
    /// Uses the time limits of `limits`, and no maximum age.
    #[must_use]
    pub const fn new(versions: HttpVersions, limits: ConnectionLimits) -> Self {
        Self {
            versions,
            first_byte: limits.first_byte,
            head: limits.request,
            idle: limits.idle,
            sign_of_life: Duration::from_secs(20),
            untaken: LONGEST_UNTAKEN,
            age: None,
            farewell: Duration::from_secs(10),
        }
    }
}

impl<S> HyperDoor<S> {
    /// Serves `service` on connections that are limited by `holding`.
    pub const fn new(service: S, holding: Holding) -> Self {
        Self { service, holding }
    }
}

impl<S, B> Door for HyperDoor<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    async fn serve(self, connection: Connection) {
        let Connection { stream, shutdown, place, .. } = connection;
        let wanted = place.wanted();
        let pulse = Arc::new(Pulse::new(place, shutdown.clone()));
        let turn = Arc::new(Turn::new(self.holding.versions, Arc::clone(&pulse)));
        let stream = Gathered::new(Heard::new(stream, Arc::clone(&pulse)), Arc::clone(&turn));
        let service = Asked { service: self.service, pulse: Arc::clone(&pulse) };
        let builder = self.holding.builder();
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
        // Errors are not logged: a client's protocol error only closes its own connection.
        let end = tokio::select! {
            biased;
            _ = turn.of(served.as_mut()) => return,
            end = self.holding.end(&pulse, shutdown, wanted) => end,
        };
        match end {
            End::Unasked => {}
            End::Drained => {
                let may_ask = pulse.is_silent() && self.holding.versions == HttpVersions::Any;
                if may_ask {
                    let ended = timeout(LAST_REQUEST, turn.of(served.as_mut())).await.is_ok();
                    if ended || pulse.is_silent() {
                        return;
                    }
                }
                served.as_mut().graceful_shutdown();
                // No time limit is needed: the future is dropped when the time limit for draining
                // is over.
                let _ = turn.of(served).await;
            }
            End::Old => {
                served.as_mut().graceful_shutdown();
                let _ = timeout(self.holding.farewell, turn.of(served)).await;
            }
        }
    }
}

/// The reason why the listener ends a connection.
enum End {
    /// The process drains.
    Drained,
    /// The connection has reached its maximum age or idle time, or its slot is needed for another
    /// client.
    Old,
    /// The client sent no byte in time, or no complete request head.
    Unasked,
}

impl Holding {
    fn builder(&self) -> auto::Builder<AtOnce> {
        let mut builder = auto::Builder::new(AtOnce { untaken: self.untaken.min(self.idle) });
        // `Pulse` measures the time of request heads for both versions.
        builder
            .http1()
            .header_read_timeout(None)
            // Responses are small: copying the body behind the head costs less than a vectored
            // write.
            .writev(false)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADER_FIELDS);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(self.sign_of_life)
            .keep_alive_timeout(self.sign_of_life)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEAD_BYTES as u32);
        match self.versions {
            HttpVersions::Any => builder,
            HttpVersions::Http2 => builder.http2_only(),
        }
    }

    /// Resolves when the connection should end: its slot is `wanted` for another client, or a
    /// silence that `pulse` reports has lasted for too long. It is polled after each turn of the
    /// connection, so it detects changes of `pulse` without a waker.
    async fn end(
        &self,
        pulse: &Pulse,
        mut shutdown: Shutdown,
        wanted: impl Future<Output = ()>,
    ) -> End {
        let mut draining = pin!(OnWake::new(shutdown.reached(Phase::Draining)));
        let mut wanted = pin!(OnWake::new(wanted));
        let mut old = pin!(OnWake::new(sleep_until(Instant::now() + self.lifetime())));
        let mut alarm = pin!(OnWake::new(sleep_until(Instant::now() + self.idle)));
        poll_fn(|cx| {
            if draining.as_mut().poll(cx).is_ready() {
                return Poll::Ready(End::Drained);
            }
            if wanted.as_mut().poll(cx).is_ready() || old.as_mut().poll(cx).is_ready() {
                return Poll::Ready(End::Old);
            }
            loop {
                let silence = pulse.silence();
                let due = self.due(silence);
                // A deadline that moved into the future is only adjusted when the timer fires,
                // because most connections become busy before that.
                if let Some(due) = due
                    && due < alarm.get_ref().deadline()
                {
                    alarm.as_mut().change(|alarm| alarm.reset(due));
                }
                if alarm.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                let now = Instant::now();
                let due = due.unwrap_or(now + self.idle);
                match silence {
                    _ if due > now => alarm.as_mut().change(|alarm| alarm.reset(due)),
                    Silence::Speechless(_) | Silence::HalfSaid(_) => {
                        return Poll::Ready(End::Unasked);
                    }
                    Silence::Idle(_) => return Poll::Ready(End::Old),
                    Silence::Busy => {}
                }
            }
        })
        .await
    }

    /// Returns when a silence will have lasted for too long, or `None` if the connection is busy.
    fn due(&self, silence: Silence) -> Option<Instant> {
        match silence {
            Silence::Speechless(since) => Some(since + self.first_byte.min(self.idle)),
            Silence::HalfSaid(since) => Some(since + self.head),
            Silence::Idle(since) => Some(since + self.idle),
            Silence::Busy => None,
        }
    }

    fn lifetime(&self) -> Duration {
        const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
        const PARTS: u32 = 1 << 16;
        let Some(age) = self.age else { return FOR_EVER };
        // The part of the tenth is random: the keys of `RandomState` are.
        let chance = RandomState::new().build_hasher().finish() as u32 % PARTS;
        age + age / 10 * chance / PARTS
    }
}

/// Calls the service, and marks the connection as busy from the request's head to the last byte of
/// its response.
struct Asked<S> {
    service: S,
    pulse: Arc<Pulse>,
}

impl<S, B> Service<Request<Incoming>> for Asked<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
{
    type Response = Response<Beating<B>>;
    type Error = Infallible;
    type Future = pulse::Answering<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let beat = self.pulse.begin();
        // HTTP/2 announces the end of the process in a frame of its own (`GOAWAY`).
        let parting =
            if request.version() < Version::HTTP_2 { Parting::Told } else { Parting::Known };
        pulse::Answering::new(self.service.call(request), beat, parting)
    }
}
