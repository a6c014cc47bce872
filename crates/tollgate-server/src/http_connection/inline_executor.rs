//! The executor for the responses of an HTTP/2 connection.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use hyper::rt::Executor;

use super::write_stall::WriteStallTimeout;

/// Polls a response in the turn of its connection, and spawns a task only if it is pending.
///
/// A response that does not wait for anything costs less this way than as a task. The number of
/// responses in one turn is bounded by the concurrent streams of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct InlineExecutor {
    /// How long a client may read nothing of a response.
    pub(super) write_stall: Duration,
}

impl<F> Executor<F> for InlineExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, answer: F) {
        let mut answer = Box::pin(WriteStallTimeout::new(answer, self.write_stall));
        // A pending future is polled again by its new task, which registers its own waker.
        if answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            tokio::spawn(answer);
        }
    }
}
