//! Work that continues without a caller: store calls after a response, and tasks of clients that
//! disconnected.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Runs refunds, charges on completion, settlements and releases of permits after responses, and
/// tasks that must not end with the request of a client. Counts the running tasks, so a process can
/// wait for their end before the process ends.
#[derive(Debug, Default)]
pub(super) struct Background(Arc<watch::Sender<usize>>);

impl Background {
    /// Polls `work` once, which completes the work if the store is in memory. Otherwise spawns a
    /// task for the rest of the work. If no async runtime is running, drops the rest of the work.
    pub(super) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut work = Box::pin(work);
        let mut context = Context::from_waker(Waker::noop());
        if let (Poll::Pending, Ok(runtime)) =
            (work.as_mut().poll(&mut context), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(self.counted(work));
        }
    }

    /// Spawns a task that executes `work`.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        tokio::spawn(self.counted(work))
    }

    /// Waits until none of the tasks of this value is running.
    pub(super) async fn finished(&self) {
        // `self` owns the sender, so the channel is open and waiting returns no error.
        let _ = self.0.subscribe().wait_for(|running| *running == 0).await;
    }

    /// Returns `work`, counted from now until its end as a running task.
    fn counted<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let running = Running::begin(&self.0);
        async move {
            let _running = running;
            work.await
        }
    }
}

/// A guard that counts one running task until the guard is dropped.
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
