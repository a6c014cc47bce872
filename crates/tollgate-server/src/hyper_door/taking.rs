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
enum Body {
    NotAsked,
    Gave,
    HasNone,
}

thread_local! {
    // A body has no reference to its sender, but is polled within the sender's turn on the same
    // thread.
    static LAST: Cell<Body> = const { Cell::new(Body::NotAsked) };
}

/// Records how the body of a response was polled.
pub(super) fn note<T>(polled: &Poll<T>) {
    LAST.set(if polled.is_ready() { Body::Gave } else { Body::HasNone });
}

pin_project! {
    /// A response that is being sent, until it is complete or its client has read nothing of it for
    /// `longest`. Dropping it resets the stream and releases everything that the request owns.
    pub(super) struct WhileTaken<F> {
        #[pin]
        sending: F,
        longest: Duration,
        untaken: Option<Pin<Box<Sleep>>>,
    }
}

impl<F> WhileTaken<F> {
    pub(super) const fn new(sending: F, longest: Duration) -> Self {
        Self { sending, longest, untaken: None }
    }
}

impl<F: Future> Future for WhileTaken<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        LAST.set(Body::NotAsked);
        if this.sending.poll(context).is_ready() {
            return Poll::Ready(());
        }
        match LAST.get() {
            Body::NotAsked => {}
            Body::Gave => *this.untaken = Some(Box::pin(sleep(*this.longest))),
            Body::HasNone => *this.untaken = None,
        }
        let Some(untaken) = this.untaken else { return Poll::Pending };
        ready!(untaken.as_mut().poll(context));
        Poll::Ready(())
    }
}
