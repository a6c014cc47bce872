//! The executor for the responses of an HTTP/2 connection.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use hyper::rt::Executor;

use super::taking::WhileTaken;

/// Polls a response in the turn of its connection, and spawns a task only if it is pending.
///
/// A response that does not wait for anything costs less this way than as a task. The number of
/// responses in one turn is bounded by the concurrent streams of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtOnce {
    /// How long a client may read nothing of a response.
    pub(super) untaken: Duration,
}

impl<F> Executor<F> for AtOnce
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, answer: F) {
        let mut answer = Box::pin(WhileTaken::new(answer, self.untaken));
        // A pending future is polled again by its new task, which registers its own waker.
        if answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            tokio::spawn(answer);
        }
    }
}
