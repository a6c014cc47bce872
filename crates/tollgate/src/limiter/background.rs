//! Work that no client waits for.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;

/// What is done after answers: refunds, charges on completion, settlements, ends of leases. No
/// client waits for it; a process that ends does.
#[derive(Debug, Default)]
pub(super) struct Background(Arc<watch::Sender<usize>>);

impl Background {
    /// Polls once, which is all that a store in memory needs; what is not done then goes on as a
    /// task. Outside of a runtime it is given up.
    pub(super) fn finish(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut work = Box::pin(work);
        let mut nobody = Context::from_waker(Waker::noop());
        if let (Poll::Pending, Ok(runtime)) =
            (work.as_mut().poll(&mut nobody), tokio::runtime::Handle::try_current())
        {
            let running = Running::begin(&self.0);
            runtime.spawn(async move {
                let _running = running;
                work.await;
            });
        }
    }

    /// Waits until nothing is left to do.
    pub(super) async fn finished(&self) {
        // The other end is held here: there is no error.
        let _ = self.0.subscribe().wait_for(|running| *running == 0).await;
    }
}

/// One task, until it is done or dropped.
struct Running(Arc<watch::Sender<usize>>);

impl Running {
    fn begin(count: &Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|running| *running += 1);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running = running.saturating_sub(1));
    }
}
