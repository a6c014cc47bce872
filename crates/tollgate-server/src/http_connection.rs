//! Serves HTTP on a connection. All HTTP listeners share this module.
//!
//! The listeners share the accept loop, the bounds on connections and the bounds on HTTP/2 control
//! frames with the proxy (`tollgate-http`), but not its reader and its loop around a connection:
//!
//! - A listener passes no bytes on, so no server behind it can find another end of a message.
//!   `StrictReader` prevents that difference, and would examine each head a second time.
//! - The proxy knows from `StrictReader` when a head begins and ends. Here, `Activity` takes this
//!   from the bytes that are read, also while requests are answered without the HTTP library
//!   (`direct`).
//! - Connections end for other reasons: a listener closes connections that have reached a maximum
//!   age, or that only started HTTP/2. The proxy keeps connections for tunnels and for unread
//!   responses. The task of a connection here also polls the pending responses of HTTP/2, to send
//!   them with one write.

mod activity;
mod direct;
mod write_batching;

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::http::{Request, Response, Version};
use hyper::body::{Body, Incoming};
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until, timeout};

use crate::connection::{Connection, ConnectionHandler, ConnectionLimits};
use crate::listener_counters::CloseReason;
use activity::{Activity, Idleness, ShutdownNotice, TrackedBody};
use direct::{DirectConnection, DirectEnd, NoDirectService};
pub(crate) use direct::{DirectRead, DirectService};
use tollgate_http::{
    ControlFrames, PendingResponses, Phase, PollOnWake, RateTerms, ResponseExecutor, ResponseTasks,
    Shutdown,
};
use write_batching::{BatchedStream, WriteBatching};

/// The largest head of a request that is accepted, in bytes.
pub const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The most header fields of a request over HTTP/1.1.
pub const MAX_HEADER_FIELDS: usize = 100;

/// The most concurrent streams of an HTTP/2 connection.
pub const MAX_STREAMS: u32 = 256;

/// The longest time for which an HTTP/2 client may read nothing of a response that is ready. Such a
/// client leaves no room in its flow control window.
pub const MAX_WRITE_STALL: Duration = Duration::from_secs(20);

/// The time in which an HTTP/1.1 client, or a client that has not sent anything yet, may still send
/// a request after the process has started to drain. The request may already be in transit, and
/// closing the connection at once would lose it. The response to this request contains
/// `connection: close`. HTTP/2 needs no such time, because it has `GOAWAY`.
pub const LAST_REQUEST: Duration = Duration::from_secs(1);

/// A listener that serves requests with the service `S`, over HTTP/1.1 and HTTP/2. The first bytes
/// of a connection select the version.
///
/// The listener limits neither the time of a response nor the size of a body, so `S` has to limit
/// both.
#[derive(Clone, Debug)]
pub struct HttpConnectionHandler<S> {
    service: S,
    limits: HttpConnectionLimits,
}

/// The address of the client, as an extension of a request. `None` on a unix domain socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub Option<SocketAddr>);

/// The versions and time limits of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpConnectionLimits {
    /// The HTTP versions that are accepted.
    pub versions: HttpVersions,
    /// The longest time until a client sends its first byte. Over HTTP/2, the longest time until
    /// the client sends its first request.
    pub first_byte: Duration,
    /// The longest time from the first to the last byte of a request's head.
    pub head: Duration,
    /// The longest time that a connection may be idle, which means without a request.
    pub idle: Duration,
    /// The time for which an HTTP/2 connection may be silent before a keep-alive ping is sent. The
    /// same time is the limit for the reply to the ping.
    pub keep_alive: Duration,
    /// The time for which an HTTP/2 client may read nothing of a response that is ready. After this
    /// time, the stream is reset. At most `idle`.
    pub write_stall: Duration,
    /// The age at which the listener asks the client of a connection to open a new connection. A
    /// random time of up to a tenth of the age is added, so clients do not all reconnect at once.
    /// Behind a load balancer that distributes connections instead of requests, the load is spread
    /// only if clients reconnect.
    pub max_age: Option<Duration>,
    /// The time that responses may still take on a connection that has reached its `max_age`.
    pub max_age_grace: Duration,
}

/// The HTTP versions that are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersions {
    /// HTTP/1.1 and HTTP/2.
    Any,
    /// HTTP/2 only, for gRPC.
    Http2,
}

impl HttpConnectionLimits {
    /// Creates limits with the time limits of `limits` and without a maximum age.
    #[must_use]
    pub const fn new(versions: HttpVersions, limits: ConnectionLimits) -> Self {
        Self {
            versions,
            first_byte: limits.first_byte,
            head: limits.request,
            idle: limits.idle,
            keep_alive: Duration::from_secs(20),
            write_stall: MAX_WRITE_STALL,
            max_age: None,
            max_age_grace: Duration::from_secs(10),
        }
    }
}

impl<S> HttpConnectionHandler<S> {
    /// Creates a handler that serves `service` on connections with the limits `limits`.
    pub const fn new(service: S, limits: HttpConnectionLimits) -> Self {
        Self { service, limits }
    }
}

impl<S, B> ConnectionHandler for HttpConnectionHandler<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    async fn serve(self, connection: Connection) {
        self.serve_with(None::<NoDirectService>, connection).await;
    }
}

impl<S, B> HttpConnectionHandler<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Serves a connection. `direct` answers the requests until a request that it cannot read, and
    /// hyper answers that request and all later ones.
    pub(crate) async fn serve_with<D>(self, direct: Option<D>, connection: Connection)
    where
        D: DirectService,
    {
        let Connection { stream, peer, shutdown, slot } = connection;
        let eviction = slot.eviction();
        let activity = Arc::new(Activity::new(slot, peer, shutdown.clone()));
        let mut stream = ControlFrames::new(stream, Arc::clone(&activity));
        let mut ending = pin!(self.limits.end(&activity, shutdown, eviction));
        let (mut end, mut earlier) = (None, Vec::new());
        if let Some(direct) = direct {
            let mut direct = DirectConnection::new(direct);
            match self.serve_directly(&mut direct, &mut stream, &activity, ending.as_mut()).await {
                (DirectEnd::Closed, _) => return,
                (DirectEnd::Handoff, ended) => end = ended,
            }
            earlier = direct.into_input();
        }
        let (stream, responses) =
            (BatchedStream::new(stream, earlier), PendingResponses::default());
        let mut writes = WriteBatching::new(
            self.limits.versions,
            Arc::clone(&activity),
            stream.clone(),
            responses.poller(),
        );
        let service = TrackedService { service: self.service, activity: Arc::clone(&activity) };
        let builder = self.limits.builder(responses);
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
        // Errors are not logged, because a client's protocol error only closes its own connection.
        let end = match end {
            Some(end) => end,
            None => tokio::select! {
                biased;
                _ = writes.poll_batched(served.as_mut()) => return,
                end = ending => end,
            },
        };
        match end {
            ConnectionEnd::NoRequest(reason) => activity.count_closed(reason),
            ConnectionEnd::Introduced => {
                activity.count_closed(CloseReason::NoRequest);
                served.as_mut().graceful_shutdown();
                let _ = timeout(LAST_REQUEST, writes.poll_batched(served)).await;
            }
            ConnectionEnd::Drained => {
                let may_close =
                    activity.awaits_request() && self.limits.versions == HttpVersions::Any;
                if may_close {
                    let ended =
                        timeout(LAST_REQUEST, writes.poll_batched(served.as_mut())).await.is_ok();
                    if ended || activity.awaits_request() {
                        return;
                    }
                }
                served.as_mut().graceful_shutdown();
                // No time limit is needed, because this future is dropped when the time limit for
                // draining is over.
                let _ = writes.poll_batched(served).await;
            }
            ConnectionEnd::Expired => {
                served.as_mut().graceful_shutdown();
                let _ = timeout(self.limits.max_age_grace, writes.poll_batched(served)).await;
            }
        }
    }

    /// Answers the first requests of a connection without hyper, until the client disconnects, a
    /// request needs hyper, or `ending` resolves because the connection has to end. In the last
    /// case, the requests that have arrived are answered first. Returns whether the client has
    /// disconnected or hyper has to continue, and the reason if the connection has to end.
    async fn serve_directly<D, T>(
        &self,
        direct: &mut DirectConnection<D>,
        stream: &mut T,
        activity: &Arc<Activity>,
        ending: Pin<&mut impl Future<Output = ConnectionEnd>>,
    ) -> (DirectEnd, Option<ConnectionEnd>)
    where
        D: DirectService,
        T: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let state = direct.state();
        let mut served = pin!(direct.serve(stream, activity));
        let end = tokio::select! {
            biased;
            ended = served.as_mut() => return (ended, None),
            end = ending => end,
        };
        if !state.is_busy() {
            return (DirectEnd::Handoff, Some(end));
        }
        state.leave();
        let ended = match end {
            ConnectionEnd::Drained => Ok(served.await),
            _ => timeout(self.limits.max_age_grace, served).await,
        };
        (ended.unwrap_or(DirectEnd::Closed), Some(end))
    }
}

/// The reason why the listener closes a connection.
enum ConnectionEnd {
    /// The process drains.
    Drained,
    /// The connection has reached its maximum age or idle time, or its slot is needed for another
    /// client.
    Expired,
    /// The client sent no byte in time, or no complete request head.
    NoRequest(CloseReason),
    /// The client started HTTP/2 and sent no request in time. A request may still be in transit, so
    /// the connection ends with `GOAWAY`.
    Introduced,
}

impl HttpConnectionLimits {
    fn builder(&self, responses: PendingResponses) -> auto::Builder<ResponseExecutor<fn()>> {
        let stall = self.write_stall.min(self.idle);
        let (tasks, no_count): (_, fn()) = (ResponseTasks::Connection(responses), || {});
        let executor = ResponseExecutor::new(tasks, stall, RateTerms::NONE, no_count);
        let mut builder = auto::Builder::new(executor);
        // `Activity` measures the time of request heads for both versions.
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
            .keep_alive_interval(self.keep_alive)
            .keep_alive_timeout(self.keep_alive)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEAD_BYTES as u32)
            // gRPC does not use `date`.
            .auto_date_header(self.versions == HttpVersions::Any);
        match self.versions {
            HttpVersions::Any => builder,
            HttpVersions::Http2 => builder.http2_only(),
        }
    }

    /// Resolves when the connection should end, and returns the reason: the process drains, the
    /// connection has reached its maximum age, its slot is needed for another client, or `activity`
    /// shows that the client has been silent for too long. The future is polled after each turn of
    /// the connection, so changes of `activity` are detected without a waker.
    async fn end(
        &self,
        activity: &Activity,
        mut shutdown: Shutdown,
        eviction: impl Future<Output = ()>,
    ) -> ConnectionEnd {
        let mut draining = pin!(PollOnWake::new(shutdown.reached(Phase::Draining)));
        let mut eviction = pin!(PollOnWake::new(eviction));
        let mut old = pin!(PollOnWake::new(sleep_until(Instant::now() + self.lifetime())));
        let mut alarm = pin!(PollOnWake::new(sleep_until(Instant::now() + self.idle)));
        poll_fn(|cx| {
            if draining.as_mut().poll(cx).is_ready() {
                return Poll::Ready(ConnectionEnd::Drained);
            }
            if eviction.as_mut().poll(cx).is_ready() || old.as_mut().poll(cx).is_ready() {
                return Poll::Ready(ConnectionEnd::Expired);
            }
            loop {
                let idleness = activity.idleness();
                let due = self.due(idleness);
                // If the deadline moved to a later time, the timer is only adjusted when it fires,
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
                match idleness {
                    _ if due > now => alarm.as_mut().change(|alarm| alarm.reset(due)),
                    Idleness::NoByteYet(_) => {
                        return Poll::Ready(ConnectionEnd::NoRequest(CloseReason::NoRequest));
                    }
                    Idleness::PartialHead(_) => {
                        return Poll::Ready(ConnectionEnd::NoRequest(CloseReason::SlowRequest));
                    }
                    Idleness::Introduced(_) => return Poll::Ready(ConnectionEnd::Introduced),
                    Idleness::Idle(_) => return Poll::Ready(ConnectionEnd::Expired),
                    Idleness::Busy => {}
                }
            }
        })
        .await
    }

    /// Returns the time at which the listener closes the connection if the client stays silent, or
    /// `None` while a request is being served.
    fn due(&self, idleness: Idleness) -> Option<Instant> {
        match idleness {
            Idleness::NoByteYet(since) | Idleness::Introduced(since) => {
                Some(since + self.first_byte.min(self.idle))
            }
            Idleness::PartialHead(since) => Some(since + self.head),
            Idleness::Idle(since) => Some(since + self.idle),
            Idleness::Busy => None,
        }
    }

    fn lifetime(&self) -> Duration {
        const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
        const PARTS: u32 = 1 << 16;
        let Some(age) = self.max_age else { return FOR_EVER };
        // The added fraction is random, because the keys of `RandomState` are random.
        let chance = RandomState::new().build_hasher().finish() as u32 % PARTS;
        age + age / 10 * chance / PARTS
    }
}

/// Calls the service, and marks the connection as busy from the request's head to the last byte of
/// its response.
struct TrackedService<S> {
    service: S,
    activity: Arc<Activity>,
}

impl<S, B> Service<Request<Incoming>> for TrackedService<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
{
    type Response = Response<TrackedBody<B>>;
    type Error = Infallible;
    type Future = activity::TrackedResponse<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let active = self.activity.begin();
        // HTTP/2 announces the end of the process in a frame of its own (`GOAWAY`).
        let notice = if request.version() < Version::HTTP_2 {
            ShutdownNotice::Header
        } else {
            ShutdownNotice::GoAway
        };
        activity::TrackedResponse::new(self.service.call(request), active, notice)
    }
}
