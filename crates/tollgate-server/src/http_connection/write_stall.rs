//! Detection of HTTP/2 clients that do not read the responses that are ready for them.
//!
//! A client's flow control window limits how much of a response is sent. A client that leaves no
//! room in it can still answer pings without end. hyper polls a body for its next frame when the
//! window has room. A body that returned a frame and is not polled again is therefore waiting for
//! its client; a body that returned `Pending` is not.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

/// The result of the last poll of a body within its sender's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyPoll {
    None,
    Ready,
    Pending,
}

thread_local! {
    // A body has no reference to its sender, but is polled within the sender's turn on the same
    // thread.
    static LAST: Cell<BodyPoll> = const { Cell::new(BodyPoll::None) };
}

/// Records how the body of a response was polled.
pub(super) fn note<T>(polled: &Poll<T>) {
    LAST.set(if polled.is_ready() { BodyPoll::Ready } else { BodyPoll::Pending });
}

pin_project! {
    /// A response that is being sent, until it is complete or its client has read nothing of it for
    /// `longest`. Dropping it resets the stream and releases everything that the request owns.
    pub(super) struct WriteStallTimeout<F> {
        #[pin]
        sending: F,
        max_stall: Duration,
        write_stall: Option<Pin<Box<Sleep>>>,
    }
}

impl<F> WriteStallTimeout<F> {
    pub(super) const fn new(sending: F, max_stall: Duration) -> Self {
        Self { sending, max_stall, write_stall: None }
    }
}

impl<F: Future> Future for WriteStallTimeout<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        LAST.set(BodyPoll::None);
        if this.sending.poll(context).is_ready() {
            return Poll::Ready(());
        }
        match LAST.get() {
            BodyPoll::None => {}
            BodyPoll::Ready => *this.write_stall = Some(Box::pin(sleep(*this.max_stall))),
            BodyPoll::Pending => *this.write_stall = None,
        }
        let Some(write_stall) = this.write_stall else { return Poll::Pending };
        ready!(write_stall.as_mut().poll(context));
        Poll::Ready(())
    }
}
