//! Whether clients of HTTP/2 take the answers that are ready for them.
//!
//! A client's window says how much of an answer it takes, and one that leaves no room in it may answer pings for ever:
//! to the connection's reader and writer it is a good one. A body is asked for its next frame when there is room for
//! more, so one that gave a frame and is not asked again waits for its client; one that has none ready does not.

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

/// The largest frame that is given at once, so that who takes little still takes some of them in time.
pub(crate) const TAKEN_AT_ONCE: usize = 16 * 1024;

/// What an answer's body did last in the turn of the task that sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    NotAsked,
    Gave,
    HasNone,
}

thread_local! {
    // A body does not know the task that sends it, but is polled within its turn.
    static LAST: Cell<Body> = const { Cell::new(Body::NotAsked) };
    static GIVEN_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Notes how the body of an answer was polled.
pub(crate) fn note<E>(polled: &Poll<Option<Result<Frame<Bytes>, E>>>) {
    if let Poll::Ready(Some(Ok(frame))) = polled {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        GIVEN_BYTES.set(GIVEN_BYTES.get().saturating_add(bytes));
    }
    LAST.set(match polled {
        Poll::Ready(_) => Body::Gave,
        Poll::Pending => Body::HasNone,
    });
}

/// Sends the answers of an HTTP/2 connection, each in a task of its own, and resets the streams of those that the client
/// does not take or takes below the least rate.
#[derive(Debug, Clone)]
pub(crate) struct WhileTaken {
    longest_pause: Duration,
    rate: RateTerms,
    session: Session,
}

impl WhileTaken {
    pub(crate) fn new(settings: &Settings, session: &Session) -> Self {
        let (longest_pause, rate) = (settings.timeouts.write_idle, RateTerms::new(settings));
        Self { longest_pause, rate, session: session.clone() }
    }
}

impl<F> Executor<F> for WhileTaken
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
    /// An answer on its way. To drop it resets its stream, and lets go of all that the request held.
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
        LAST.set(Body::NotAsked);
        GIVEN_BYTES.set(0);
        if this.sending.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let last = LAST.get();
        if last != Body::NotAsked {
            *this.waits_for_client = last == Body::Gave;
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
