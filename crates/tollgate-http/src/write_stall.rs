//! Detection of HTTP/2 clients that do not read the responses that are ready for them.
//!
//! A client's flow control window limits the bytes of a response that may be sent. A client that
//! leaves no room in its window can still answer pings without end, so neither the reader nor the
//! writer of the connection detects a problem. hyper polls a body for its next frame only when the
//! window has room. A body that returned a frame and is not polled again is therefore waiting for
//! its client; a body that returned `Pending` is not.
//!
//! The detection is written by hand, because hyper keeps such a response until the connection ends:
//! one client with 256 streams kept 256 requests and their bodies.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use hyper::rt::Executor;

use crate::{
    least_rate::{LeastRate, RateTerms},
    pending_responses::PendingResponses,
};

/// The largest frame that a body returns at once, in bytes, so a slow client still finishes some
/// frames within the time limit.
pub const MAX_FRAME: usize = 16 * 1024;

/// The result of the last poll of a body by the future that sends the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyPoll {
    None,
    Ready,
    Pending,
}

thread_local! {
    // A body has no reference to the future that sends it, but that future polls the body on the
    // same thread. Therefore the results of the polls are kept per thread.
    static LAST: Cell<BodyPoll> = const { Cell::new(BodyPoll::None) };
    static GIVEN_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Records the result `polled` of polling a response body, for the [`ResponseExecutor`] that sends
/// the response on this thread. `bytes` is the number of bytes of the frame that the body returned.
pub fn note<T>(polled: &Poll<T>, bytes: usize) {
    GIVEN_BYTES.set(GIVEN_BYTES.get().saturating_add(bytes));
    LAST.set(if polled.is_ready() { BodyPoll::Ready } else { BodyPoll::Pending });
}

/// The task that polls the responses of an HTTP/2 connection.
#[derive(Debug, Clone)]
pub enum ResponseTasks {
    /// Each response runs in a task of its own.
    Own,
    /// The task of the connection polls each response: for the first time when the request arrives,
    /// and later with the other pending responses. The limit on a client's concurrent streams
    /// bounds the number of responses that one turn of the task polls.
    Connection(PendingResponses),
}

/// The executor that sends the responses of an HTTP/2 connection. If a client does not read a
/// response, or reads it below the least rate, the executor resets the stream and calls `on_reset`.
#[derive(Debug, Clone)]
pub struct ResponseExecutor<N> {
    tasks: ResponseTasks,
    longest_pause: Duration,
    rate: RateTerms,
    on_reset: N,
}

impl<N: Fn()> ResponseExecutor<N> {
    /// Creates an executor that resets a stream if its client pauses for `longest_pause`, or reads
    /// more slowly than `rate`.
    pub const fn new(
        tasks: ResponseTasks,
        longest_pause: Duration,
        rate: RateTerms,
        on_reset: N,
    ) -> Self {
        Self { tasks, longest_pause, rate, on_reset }
    }
}

impl<F, N> Executor<F> for ResponseExecutor<N>
where
    F: Future<Output: Send> + Send + 'static,
    N: Fn() + Clone + Send + 'static,
{
    fn execute(&self, sending: F) {
        let pace = LeastRate::new(self.rate, self.longest_pause);
        let on_reset = self.on_reset.clone();
        let sending = Sending { sending, waits_for_client: false, pace, on_reset };
        match &self.tasks {
            ResponseTasks::Own => {
                tokio::spawn(sending);
            }
            ResponseTasks::Connection(pending) => {
                let mut sending = Box::pin(sending);
                // The next poll of a pending response registers the waker of the connection.
                if sending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                    pending.add(sending);
                }
            }
        }
    }
}

pin_project_lite::pin_project! {
    /// A response that is being sent. Dropping this value resets the stream and releases everything
    /// that the request owns.
    struct Sending<F, N> {
        #[pin]
        sending: F,
        waits_for_client: bool,
        pace: LeastRate,
        on_reset: N,
    }
}

impl<F: Future, N: Fn()> Future for Sending<F, N> {
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
        (this.on_reset)();
        Poll::Ready(())
    }
}
