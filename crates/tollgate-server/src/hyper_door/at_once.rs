//! Where the answers of an HTTP/2 connection are made.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use hyper::rt::Executor;

use super::taking::WhileTaken;

/// Makes an answer in the turn of its connection, and in a task of its own where it has to wait.
///
/// An answer that needs nothing from outside costs less than a task does. How many there are in one
/// turn is bounded by the streams that a client may have open.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtOnce {
    /// How long a client may take nothing of an answer.
    pub(super) untaken: Duration,
}

impl<F> Executor<F> for AtOnce
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, answer: F) {
        let mut answer = Box::pin(WhileTaken::new(answer, self.untaken));
        // What has to wait is polled again by its task, which leaves a waker of its own.
        if answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            tokio::spawn(answer);
        }
    }
}
