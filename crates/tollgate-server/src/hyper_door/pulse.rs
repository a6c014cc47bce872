//! The activity of a connection: serving requests, receiving one, or idle.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::http::{HeaderValue, Response, header};
use hyper::body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::taking;
use crate::places::Place;
use crate::shutdown::{Phase, Shutdown};

/// The first bytes of an HTTP/2 connection. No HTTP/1.1 request starts with them.
const HTTP_2: &[u8; 3] = b"PRI";

/// The length of the start of an HTTP/2 connection, in bytes: the preface, and the head of its
/// first frame.
const INTRODUCTION: u64 = 24 + 9;

/// The activity of a connection. Reports changes to the connection's slot.
#[derive(Debug)]
pub(super) struct Pulse {
    state: Mutex<State>,
    place: Place,
    shutdown: Shutdown,
}

#[derive(Debug)]
struct State {
    first: [u8; HTTP_2.len()],
    heard: u64,
    in_flight: u32,
    silence: Silence,
}

/// The state of a connection while no request is being served.
#[derive(Clone, Copy, Debug)]
pub(super) enum Silence {
    /// At least one request is being served.
    Busy,
    /// Silent since this time: the client has not sent a byte.
    Speechless(Instant),
    /// Idle since this time.
    Idle(Instant),
    /// A request head, or an HTTP/2 preface, started at this time and is not complete.
    HalfSaid(Instant),
}

impl Pulse {
    pub(super) fn new(place: Place, shutdown: Shutdown) -> Self {
        let now = Instant::now();
        place.rest(now);
        let silence = Silence::Speechless(now);
        let state = State { first: [0; HTTP_2.len()], heard: 0, in_flight: 0, silence };
        Self { state: Mutex::new(state), place, shutdown }
    }

    pub(super) fn silence(&self) -> Silence {
        self.state().silence
    }

    /// Returns whether the client has started HTTP/2.
    pub(super) fn speaks_http_2(&self) -> bool {
        self.state().first == *HTTP_2
    }

    /// Returns whether no request is being served for a client that uses HTTP/1.1, or has not sent
    /// anything yet.
    pub(super) fn is_silent(&self) -> bool {
        let state = self.state();
        state.first != *HTTP_2 && !matches!(state.silence, Silence::Busy)
    }

    /// Marks the connection as busy after a request's head, until the returned guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Beat {
        let mut state = self.state();
        state.in_flight += 1;
        state.silence = Silence::Busy;
        self.place.work();
        Beat(Arc::clone(self))
    }

    fn hear(&self, bytes: &[u8]) {
        let mut state = self.state();
        let known = usize::try_from(state.heard).unwrap_or(usize::MAX);
        for (place, byte) in state.first.iter_mut().skip(known).zip(bytes) {
            *place = *byte;
        }
        state.heard += bytes.len() as u64;
        // After the preface, an HTTP/2 client also sends frames that are not requests.
        let is_introduced = state.first == *HTTP_2 && state.heard >= INTRODUCTION;
        state.silence = match state.silence {
            Silence::Speechless(_) | Silence::Idle(_) if !is_introduced => {
                self.place.work();
                Silence::HalfSaid(Instant::now())
            }
            Silence::Speechless(since) | Silence::HalfSaid(since) if is_introduced => {
                self.place.rest(since);
                Silence::Idle(since)
            }
            silence => silence,
        };
    }

    fn end(&self) {
        let mut state = self.state();
        state.in_flight -= 1;
        if state.in_flight == 0 {
            let now = Instant::now();
            self.place.rest(now);
            state.silence = Silence::Idle(now);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard for one request that is being served.
#[derive(Debug)]
pub(super) struct Beat(Arc<Pulse>);

impl Beat {
    /// Returns whether the process is shutting down.
    fn is_parting(&self) -> bool {
        self.0.shutdown.phase() > Phase::Serving
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// How a client is informed that the process drains, and that no further request is served on its
/// connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// By a header field of its response (HTTP/1.1).
    Told,
    /// By the connection itself (HTTP/2).
    Known,
}

pin_project! {
    /// A response that is being produced.
    pub(super) struct Answering<F> {
        #[pin]
        answer: F,
        beat: Option<Beat>,
        parting: Parting,
    }
}

impl<F> Answering<F> {
    pub(super) const fn new(answer: F, beat: Beat, parting: Parting) -> Self {
        Self { answer, beat: Some(beat), parting }
    }
}

impl<F, B, E> Future for Answering<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<Beating<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.answer.poll(cx))?;
        let beat = this.beat.take();
        if *this.parting == Parting::Told && beat.as_ref().is_some_and(Beat::is_parting) {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(answer.map(|body| Beating { body, _beat: beat })))
    }
}

pin_project! {
    /// A response body. The request ends when it is dropped.
    #[derive(Debug)]
    pub(crate) struct Beating<B> {
        #[pin]
        body: B,
        _beat: Option<Beat>,
    }
}

impl<B: Body> Body for Beating<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = self.project().body.poll_frame(cx);
        taking::note(&polled);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

pin_project! {
    /// A stream that reports received bytes to [`Pulse`].
    pub(super) struct Heard<T> {
        #[pin]
        stream: T,
        pulse: Arc<Pulse>,
    }
}

impl<T> Heard<T> {
    pub(super) const fn new(stream: T, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse }
    }
}

impl<T: AsyncRead> AsyncRead for Heard<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        let before = buffer.filled().len();
        ready!(this.stream.poll_read(cx, buffer))?;
        let read = &buffer.filled()[before..];
        if !read.is_empty() {
            this.pulse.hear(read);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite> AsyncWrite for Heard<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.project().stream.poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().stream.poll_shutdown(cx)
    }
}
