//! Detection of HTTP/2 clients that do not read the responses that are ready for them.
//!
//! A client's flow control window limits how much of a response is sent. A client that leaves no
//! room in it can still answer pings without end, so the reader and the writer of the connection
//! detect no problem. hyper polls a body for its next frame when the window has room. A body that
//! returned a frame and is not polled again is therefore waiting for its client; a body that
//! returned `Pending` is not.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::Frame;
use hyper::rt::Executor;

use crate::{
    CloseReason, Settings,
    least_rate::{LeastRate, RateTerms},
    session::Session,
};

/// The largest frame that is returned at once, so a slow client still finishes some frames within
/// the time limit.
pub(crate) const MAX_FRAME: usize = 16 * 1024;

/// The result of the last poll of a body within its sender's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyPoll {
    None,
    Ready,
    Pending,
}

thread_local! {
    // A body has no reference to the task that sends it, but is polled within the task's turn on
    // the same thread.
    static LAST: Cell<BodyPoll> = const { Cell::new(BodyPoll::None) };
    static GIVEN_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Records how the body of a response was polled.
pub(crate) fn note<E>(polled: &Poll<Option<Result<Frame<Bytes>, E>>>) {
    if let Poll::Ready(Some(Ok(frame))) = polled {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        GIVEN_BYTES.set(GIVEN_BYTES.get().saturating_add(bytes));
    }
    LAST.set(match polled {
        Poll::Ready(_) => BodyPoll::Ready,
        Poll::Pending => BodyPoll::Pending,
    });
}

/// The executor that sends the responses of an HTTP/2 connection, each in its own task. It resets
/// the streams of clients that do not read a response, or read it below the least rate.
#[derive(Debug, Clone)]
pub(crate) struct ResponseExecutor {
    longest_pause: Duration,
    rate: RateTerms,
    session: Session,
}

impl ResponseExecutor {
    pub(crate) fn new(settings: &Settings, session: &Session) -> Self {
        let (longest_pause, rate) = (settings.timeouts.write_idle, RateTerms::new(settings));
        Self { longest_pause, rate, session: session.clone() }
    }
}

impl<F> Executor<F> for ResponseExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, sending: F) {
        let pace = LeastRate::new(self.rate, self.longest_pause);
        let session = self.session.clone();
        tokio::spawn(Sending { sending, waits_for_client: false, pace, session });
    }
}

pin_project_lite::pin_project! {
    /// A response that is being sent. Dropping it resets the stream and releases everything that
    /// the request owns.
    struct Sending<F> {
        #[pin]
        sending: F,
        waits_for_client: bool,
        pace: LeastRate,
        session: Session,
    }
}

impl<F: Future> Future for Sending<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        LAST.set(BodyPoll::None);
        GIVEN_BYTES.set(0);
        if this.sending.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let last = LAST.get();
        if last != BodyPoll::None {
            *this.waits_for_client = last == BodyPoll::Ready;
            this.pace.moved(GIVEN_BYTES.get());
        }
        if !*this.waits_for_client {
            return Poll::Pending;
        }
        ready!(this.pace.poll_too_slow(cx));
        this.session.count(CloseReason::SlowResponse);
        Poll::Ready(())
    }
}
