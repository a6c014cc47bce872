//! Detection of HTTP/2 clients that do not read the responses that are ready for them.
//!
//! A client's flow control window limits how much of a response is sent. A client that leaves no
//! room in it can still answer pings without end, so the reader and the writer of the connection
//! detect no problem. hyper polls a body for its next frame when the window has room. A body that
//! returned a frame and is not polled again is therefore waiting for its client; a body that
//! returned `Pending` is not.
//!
//! Written by hand: hyper keeps such a response until the connection ends, so one client with 256
//! streams kept 256 requests and their bodies.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use hyper::rt::Executor;

use crate::least_rate::{LeastRate, RateTerms};

/// The largest frame that is returned at once, so a slow client still finishes some frames within
/// the time limit.
pub const MAX_FRAME: usize = 16 * 1024;

/// The result of the last poll of a body while its sender was polled.
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

/// Records how the body of a response was polled, and the bytes of the frame that it returned.
pub fn note<T>(polled: &Poll<T>, bytes: usize) {
    GIVEN_BYTES.set(GIVEN_BYTES.get().saturating_add(bytes));
    LAST.set(if polled.is_ready() { BodyPoll::Ready } else { BodyPoll::Pending });
}

/// Where a response of an HTTP/2 connection is polled first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstPoll {
    /// Each response runs in a task of its own.
    InTask,
    /// A response is first polled in the task of its connection, and a task is spawned only if it
    /// is pending. A response that does not wait for anything costs less this way. The concurrent
    /// streams of a client bound the number of responses in one turn.
    Inline,
}

/// The executor that sends the responses of an HTTP/2 connection. It resets the streams of clients
/// that do not read a response, or read it below the least rate, and calls `on_reset`.
#[derive(Debug, Clone)]
pub struct ResponseExecutor<N> {
    first_poll: FirstPoll,
    longest_pause: Duration,
    rate: RateTerms,
    on_reset: N,
}

impl<N: Fn()> ResponseExecutor<N> {
    /// Resets a stream if its client pauses for `longest_pause`, or reads more slowly than `rate`.
    pub const fn new(
        first_poll: FirstPoll,
        longest_pause: Duration,
        rate: RateTerms,
        on_reset: N,
    ) -> Self {
        Self { first_poll, longest_pause, rate, on_reset }
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
        if self.first_poll == FirstPoll::InTask {
            tokio::spawn(sending);
            return;
        }
        let mut sending = Box::pin(sending);
        // A pending future is polled again by its new task, which registers its own waker.
        if sending.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            tokio::spawn(sending);
        }
    }
}

pin_project_lite::pin_project! {
    /// A response that is being sent. Dropping it resets the stream and releases everything that
    /// the request owns.
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
