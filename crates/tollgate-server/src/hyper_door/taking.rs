//! Whether clients of HTTP/2 take the answers that are ready for them.
//!
//! A client's window says how much of an answer it takes, and one that leaves no room in it may
//! answer pings for ever. A body is asked for its next frame when there is room for more, so one that
//! gave a frame and is not asked again waits for its client; one that has none ready does not.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

/// What an answer's body did last in the turn of whoever sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    NotAsked,
    Gave,
    HasNone,
}

thread_local! {
    // A body does not know who sends it, but is polled within its turn.
    static LAST: Cell<Body> = const { Cell::new(Body::NotAsked) };
}

/// Notes how the body of an answer was polled.
pub(super) fn note<T>(polled: &Poll<T>) {
    LAST.set(if polled.is_ready() { Body::Gave } else { Body::HasNone });
}

pin_project! {
    /// An answer on its way, until it has gone or its client took nothing of it for too long. To drop
    /// it resets its stream, and lets go of all that the request held.
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
