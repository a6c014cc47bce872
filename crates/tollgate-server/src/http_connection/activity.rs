//! The activity of a connection: whether it serves requests, receives a request, or is idle.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::http::{HeaderValue, Response, header};
use hyper::body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tollgate_http::{Phase, Shutdown, StreamObserver, note};

use crate::connection_slots::ConnectionSlot;
use crate::listener_counters::CloseReason;

/// The first bytes of an HTTP/2 connection. No HTTP/1.1 request starts with them.
const HTTP_2: &[u8; 12] = b"PRI * HTTP/2";

/// The length of the start of an HTTP/2 connection, in bytes: the preface, and the head of its
/// first frame.
const HTTP_2_START_BYTES: u64 = 24 + 9;

/// The activity of a connection. Changes are reported to the connection's slot.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    started_at: Instant,
    peer: Option<SocketAddr>,
    slot: ConnectionSlot,
    shutdown: Shutdown,
}

#[derive(Debug)]
struct State {
    first: [u8; HTTP_2.len()],
    bytes_read: u64,
    in_flight: u32,
    idleness: Idleness,
}

/// Whether a connection serves a request, and otherwise the time since which it has waited.
#[derive(Clone, Copy, Debug)]
pub(super) enum Idleness {
    /// At least one request is being served.
    Busy,
    /// The client has not sent any byte since the connection was opened at this time.
    NoByteYet(Instant),
    /// The client started HTTP/2, and has sent no request since this time.
    Introduced(Instant),
    /// The connection has been idle since this time.
    Idle(Instant),
    /// A request head, or an HTTP/2 preface, started at this time and is not complete.
    PartialHead(Instant),
}

impl Activity {
    pub(super) fn new(slot: ConnectionSlot, peer: Option<SocketAddr>, shutdown: Shutdown) -> Self {
        let now = Instant::now();
        slot.mark_idle(now);
        let idleness = Idleness::NoByteYet(now);
        let state = State { first: [0; HTTP_2.len()], bytes_read: 0, in_flight: 0, idleness };
        Self { state: Mutex::new(state), started_at: now, peer, slot, shutdown }
    }

    /// Counts that the listener closes this connection.
    pub(super) fn count_closed(&self, reason: CloseReason) {
        self.slot.counters().count_closed(reason, self.peer);
    }

    pub(super) fn idleness(&self) -> Idleness {
        self.state().idleness
    }

    /// Returns whether the client has started HTTP/2.
    pub(super) fn uses_http_2(&self) -> bool {
        self.state().first == *HTTP_2
    }

    /// Returns whether the connection serves no request, and the client uses HTTP/1.1 or has not
    /// sent anything yet.
    pub(super) fn awaits_request(&self) -> bool {
        let state = self.state();
        state.first != *HTTP_2 && !matches!(state.idleness, Idleness::Busy)
    }

    /// Returns whether the process is shutting down.
    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutdown.phase() > Phase::Serving
    }

    /// Marks the connection as busy after the head of a request. The request ends when the returned
    /// guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> ActiveRequest {
        let mut state = self.state();
        state.in_flight += 1;
        state.idleness = Idleness::Busy;
        self.slot.mark_busy();
        ActiveRequest(Arc::clone(self))
    }

    fn receive(&self, bytes: &[u8]) {
        let mut state = self.state();
        let known = usize::try_from(state.bytes_read).unwrap_or(usize::MAX);
        for (slot, byte) in state.first.iter_mut().skip(known).zip(bytes) {
            *slot = *byte;
        }
        state.bytes_read += bytes.len() as u64;
        // After the preface, an HTTP/2 client also sends frames that are not requests.
        let has_started_http_2 = state.first == *HTTP_2 && state.bytes_read >= HTTP_2_START_BYTES;
        state.idleness = match state.idleness {
            Idleness::NoByteYet(_) | Idleness::Idle(_) if !has_started_http_2 => {
                self.slot.mark_busy();
                Idleness::PartialHead(Instant::now())
            }
            Idleness::NoByteYet(_) | Idleness::PartialHead(_) if has_started_http_2 => {
                self.slot.mark_idle(self.started_at);
                Idleness::Introduced(self.started_at)
            }
            idleness => idleness,
        };
    }

    fn end(&self) {
        let mut state = self.state();
        state.in_flight -= 1;
        if state.in_flight == 0 {
            let now = Instant::now();
            self.slot.mark_idle(now);
            state.idleness = Idleness::Idle(now);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard for one request that is being served.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<Activity>);

impl ActiveRequest {
    /// Returns whether the process is shutting down.
    fn is_shutting_down(&self) -> bool {
        self.0.is_shutting_down()
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The way in which the client of a connection is informed that the process drains and that the
/// connection serves no further request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownNotice {
    /// By a header field of the response (HTTP/1.1).
    Header,
    /// By a `GOAWAY` frame, which the HTTP library sends on the connection (HTTP/2).
    GoAway,
}

pin_project! {
    /// A response that is being produced.
    pub(super) struct TrackedResponse<F> {
        #[pin]
        answer: F,
        active: Option<ActiveRequest>,
        notice: ShutdownNotice,
    }
}

impl<F> TrackedResponse<F> {
    pub(super) const fn new(answer: F, active: ActiveRequest, notice: ShutdownNotice) -> Self {
        Self { answer, active: Some(active), notice }
    }
}

impl<F, B, E> Future for TrackedResponse<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<TrackedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.answer.poll(cx))?;
        let active = this.active.take();
        if *this.notice == ShutdownNotice::Header
            && active.as_ref().is_some_and(ActiveRequest::is_shutting_down)
        {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(answer.map(|body| TrackedBody { body, _beat: active })))
    }
}

pin_project! {
    /// A response body. The request ends when the body is dropped.
    #[derive(Debug)]
    pub(crate) struct TrackedBody<B> {
        #[pin]
        body: B,
        _beat: Option<ActiveRequest>,
    }
}

impl<B: Body> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = self.project().body.poll_frame(cx);
        note(&polled, 0);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl StreamObserver for Activity {
    fn on_read(&self, bytes: &[u8]) {
        self.receive(bytes);
    }

    fn on_too_many_control_frames(&self) {
        self.count_closed(CloseReason::ControlFrames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_slots::ConnectionSlots;

    fn activity() -> Activity {
        let (_phase, shutdown) = Shutdown::new();
        let slot = ConnectionSlots::new("test", 1).try_slot().expect("a free slot");
        Activity::new(slot, None, shutdown)
    }

    #[test]
    fn an_http_1_method_that_begins_with_pri_does_not_start_http_2() {
        for request in
            ["PRINT /documents/4711 HTTP/1.1\r\nhost: a", "PRI * HTTP/1.1\r\nhost: 0.a.example"]
        {
            let activity = activity();
            activity.receive(request.as_bytes());
            assert!(!activity.uses_http_2() && activity.awaits_request(), "{request}");
            assert!(matches!(activity.idleness(), Idleness::PartialHead(_)), "{request}");
        }
    }

    #[test]
    fn an_http_2_preface_starts_http_2_in_pieces_too() {
        let start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        for size in 1..=start.len() {
            let activity = activity();
            for piece in start.chunks(size) {
                assert!(!matches!(activity.idleness(), Idleness::Introduced(_)));
                activity.receive(piece);
            }
            assert!(activity.uses_http_2() && !activity.awaits_request());
            assert!(matches!(activity.idleness(), Idleness::Introduced(_)));
        }
    }
}
