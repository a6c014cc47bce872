//! What a connection does, so that a slow head is told from an idle client and from a request that
//! is being answered.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

use crate::connection::ConnectionLimits;
use crate::listen::Stream;

/// The first byte of HTTP/2's preface that no HTTP/1.1 method shares: `PRI`, not `PUT`.
const PREFACE: &[u8] = b"PR";

/// What a connection does, shared by what reads its bytes and what serves its requests.
pub(super) struct Activity(Mutex<State>);

struct State {
    doing: Doing,
    /// When it began to.
    since: Instant,
    protocol: Protocol,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Nothing has come since the last answer.
    Idle,
    /// Bytes have come that are no request yet.
    Head,
    /// So many requests are being answered.
    Answering(u32),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// Fewer bytes than it takes to know have come: so many.
    Unknown(usize),
    Http1,
    /// Bytes between requests are settings and pings, not a slow head.
    Http2,
}

impl Activity {
    pub(super) fn begin() -> Self {
        let protocol = Protocol::Unknown(0);
        Self(Mutex::new(State { doing: Doing::Idle, since: Instant::now(), protocol }))
    }

    /// A request is being answered until what this returns is dropped.
    pub(super) fn request(self: &Arc<Self>) -> UnderWay {
        self.with(|state| match &mut state.doing {
            Doing::Answering(requests) => *requests = requests.saturating_add(1),
            doing => *doing = Doing::Answering(1),
        });
        UnderWay(Arc::clone(self))
    }

    /// Resolves once the connection was idle, or a request's head under way, for longer than
    /// `limits` say; it may be noticed as long again as a head may take.
    pub(super) async fn stalled(&self, limits: ConnectionLimits) {
        let tick = limits.request.min(limits.idle);
        loop {
            let until = self.with(|state| match state.doing {
                Doing::Idle => Some(state.since + limits.idle),
                Doing::Head => Some(state.since + limits.request),
                Doing::Answering(_) => None,
            });
            let now = Instant::now();
            if until.is_some_and(|until| until <= now) {
                return;
            }
            sleep_until(until.unwrap_or(now + tick).min(now + tick)).await;
        }
    }

    fn received(&self, bytes: &[u8]) {
        self.with(|state| {
            if let Protocol::Unknown(seen) = state.protocol {
                let is_preface = PREFACE[seen..].iter().zip(bytes).all(|(one, other)| one == other);
                let seen = seen + bytes.len();
                state.protocol = match (is_preface, seen < PREFACE.len()) {
                    (true, true) => Protocol::Unknown(seen),
                    (true, false) => Protocol::Http2,
                    (false, _) => Protocol::Http1,
                };
            }
            if state.doing == Doing::Idle {
                state.since = Instant::now();
                if state.protocol != Protocol::Http2 {
                    state.doing = Doing::Head;
                }
            } else if state.protocol == Protocol::Http2 && state.doing == Doing::Head {
                state.doing = Doing::Idle;
            }
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        // Nothing panics while it holds the lock.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A request that is being answered.
pub(super) struct UnderWay(Arc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.with(|state| match state.doing {
            Doing::Answering(requests) if requests > 1 => {
                state.doing = Doing::Answering(requests - 1);
            }
            _ => {
                state.doing = Doing::Idle;
                state.since = Instant::now();
            }
        });
    }
}

/// A stream whose incoming bytes are noticed.
pub(super) struct Watched {
    stream: Stream,
    activity: Arc<Activity>,
}

impl Watched {
    pub(super) const fn new(stream: Stream, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let received = &buffer.filled()[before..];
        if !received.is_empty() {
            self.activity.received(received);
        }
        polled
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
