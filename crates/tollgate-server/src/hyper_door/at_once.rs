//! Where the answers of an HTTP/2 connection are made.

use std::future::Future;
use std::task::{Context, Waker};

use hyper::rt::Executor;

/// Makes an answer in the turn of its connection, and in a task of its own where it has to wait.
///
/// Requests that came together and need not wait are so answered in one write. In tasks of their
/// own each would wake the connection, which would write each answer by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtOnce;

impl<F> Executor<F> for AtOnce
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        let mut future = Box::pin(future);
        // Whoever has to wait is polled again by its task, which leaves its own waker.
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            tokio::spawn(future);
        }
    }
}
