//! The responses of an HTTP/2 connection that are not ready when their requests arrive.
//!
//! A response is often not ready when it is first polled, because the frame with the body of the
//! request arrives later. hyper expects that each response runs in a task of its own. Such a task
//! may run on any thread, and it wakes the task of the connection, which then sends only this
//! response. In this module, the task of the connection polls the pending responses itself, and
//! sends all responses that are ready with one write.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;

type Response = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The responses of one connection that were not ready when they were first polled. Clones share
/// their state. The limit on the connection's concurrent streams bounds the number of responses.
#[derive(Clone, Default)]
pub struct PendingResponses(Arc<Mutex<Vec<Response>>>);

/// The part of [`PendingResponses`] that the task of the connection polls.
pub struct ResponsePoller {
    added: PendingResponses,
    pending: FuturesUnordered<Response>,
}

impl PendingResponses {
    pub(crate) fn add(&self, response: Response) {
        self.0.lock().push(response);
    }

    /// Returns the poller of these responses. A connection has one poller.
    #[must_use]
    pub fn poller(&self) -> ResponsePoller {
        ResponsePoller { added: self.clone(), pending: FuturesUnordered::new() }
    }
}

impl ResponsePoller {
    /// Polls the responses that were added since the last call, and the responses that were woken.
    /// Returns whether a response has ended, in which case the connection has frames to send.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        self.pending.extend(self.added.0.lock().drain(..));
        let mut has_ended = false;
        while let Poll::Ready(Some(())) = self.pending.poll_next_unpin(cx) {
            has_ended = true;
        }
        has_ended
    }
}

impl fmt::Debug for PendingResponses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingResponses").field("added", &self.0.lock().len()).finish()
    }
}

impl fmt::Debug for ResponsePoller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponsePoller").field("pending", &self.pending.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::{Wake, Waker},
    };

    use futures_util::future::pending;
    use tokio::sync::oneshot;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_response_that_becomes_ready_wakes_the_connection() {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut cx = Context::from_waker(&waker);
        let responses = PendingResponses::default();
        let mut poller = responses.poller();
        assert!(!poller.poll(&mut cx));
        let (sender, receiver) = oneshot::channel::<()>();
        responses.add(Box::pin(pending()));
        responses.add(Box::pin(async { receiver.await.unwrap() }));
        assert!(!poller.poll(&mut cx));
        // `FuturesUnordered` may wake the task once more after it polled every response.
        let before = wakes.0.load(Ordering::Relaxed);
        sender.send(()).unwrap();
        assert_eq!(wakes.0.load(Ordering::Relaxed), before + 1);
        assert!(poller.poll(&mut cx));
        assert!(!poller.poll(&mut cx));
    }
}
