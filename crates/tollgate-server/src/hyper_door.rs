//! HTTP on a connection: what every door that speaks it has in common.

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

/// The largest head of a request, in bytes.
pub const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The most header fields of a request over HTTP/1.1.
pub const MAX_HEADER_FIELDS: usize = 100;

/// The most requests that one HTTP/2 connection has open at once.
pub const MAX_STREAMS: u32 = 256;

/// How long an HTTP/2 client may take nothing of an answer that is ready for it: its window says how
/// much it takes.
pub const LONGEST_UNTAKEN: Duration = Duration::from_secs(20);

/// How long a client that speaks HTTP/1.1, or has not spoken yet, may still ask after the process
/// was told to end. It may have asked already, and its request be on the way: to close at once would
/// lose that. The answer tells the client to come back elsewhere, as HTTP/2 does by itself.
pub const LAST_REQUEST: Duration = Duration::from_secs(1);

/// A door behind which `S` answers requests: HTTP/1.1 and HTTP/2, told apart by the first bytes.
///
/// How long an answer may take, and how large a body may be, is the business of `S`.
#[derive(Clone, Debug)]
pub struct HyperDoor<S> {
    service: S,
    holding: Holding,
}

/// Who asked, as an extension of a request; nobody knows of a unix domain socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub Option<SocketAddr>);

/// How long connections are held, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Which versions of HTTP are spoken.
    pub versions: HttpVersions,
    /// How long a client may take to say its first byte.
    pub first_byte: Duration,
    /// How long a request's head may take from its first byte to its last.
    pub head: Duration,
    /// How long a connection may be without a request.
    pub idle: Duration,
    /// How long an HTTP/2 client may be silent until it is asked for a sign of life, and how long
    /// it then has to give one.
    pub sign_of_life: Duration,
    /// How long an HTTP/2 client may take nothing of an answer that is ready, which is no longer than
    /// it may be without a request: its stream is reset then.
    pub untaken: Duration,
    /// How old a connection may be until its client is told to open another, up to a tenth more so
    /// that not all come back at once. Balancers that see connections, not requests, spread load by it.
    pub age: Option<Duration>,
    /// How long the last answers may take on a connection that has grown too old.
    pub farewell: Duration,
}

/// Which versions of HTTP are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersions {
    /// HTTP/1.1 and HTTP/2.
    Any,
    /// HTTP/2 only, as gRPC is.
    Http2,
}

impl Holding {
    /// Connections within `limits`, however old.
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
    /// `service`, on connections that are held as `holding` says.
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
        // What a client does wrong on its connection is its own affair: it is closed.
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
                // As long as the process has: the future is dropped at its end.
                let _ = turn.of(served).await;
            }
            End::Old => {
                served.as_mut().graceful_shutdown();
                let _ = timeout(self.holding.farewell, turn.of(served)).await;
            }
        }
    }
}

/// Why a connection is ended from here.
enum End {
    /// The process is.
    Drained,
    /// It has been there, or idle, for long enough, or idle where others have no place.
    Old,
    /// Its client said nothing, or began to and did not go on.
    Unasked,
}

impl Holding {
    fn builder(&self) -> auto::Builder<AtOnce> {
        let mut builder = auto::Builder::new(AtOnce { untaken: self.untaken.min(self.idle) });
        // The pulse watches over heads of both versions.
        builder
            .http1()
            .header_read_timeout(None)
            // Answers are small: to copy one behind its head costs less than a list of two pieces.
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

    /// Resolves when the connection should end: its place is `wanted` by others, or what `pulse`
    /// tells of has lasted for too long. Polled after each turn of the connection, which is how it
    /// hears of what has changed.
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
                // A deadline that has moved away is left until it rings: most never do.
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

    /// When a silence has lasted for too long; `None` while there is none.
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
        // Which part of a tenth is by chance: hashers begin with random keys.
        let chance = RandomState::new().build_hasher().finish() as u32 % PARTS;
        age + age / 10 * chance / PARTS
    }
}

/// Calls the service, and tells the pulse from the request's head to the last byte of its answer.
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
        // Over HTTP/2 a frame of its own says that the process ends.
        let parting =
            if request.version() < Version::HTTP_2 { Parting::Told } else { Parting::Known };
        pulse::Answering::new(self.service.call(request), beat, parting)
    }
}
