//! Work that nobody waits for.

use std::future::Future;
use std::task::{Context, Poll, Waker};

/// Polls once, which is all that a store in memory needs; what is not done then goes on as a task.
/// Outside of a runtime it is given up.
pub(super) fn finish(work: impl Future<Output = ()> + Send + 'static) {
    let mut work = Box::pin(work);
    let mut nobody = Context::from_waker(Waker::noop());
    if let (Poll::Pending, Ok(runtime)) =
        (work.as_mut().poll(&mut nobody), tokio::runtime::Handle::try_current())
    {
        runtime.spawn(work);
    }
}
