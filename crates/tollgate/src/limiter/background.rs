//! Work that continues without a caller: store calls after a response, and tasks of clients that
//! disconnected.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Runs refunds, charges on completion, settlements and releases of permits after responses, and
/// tasks that must not end with the request of a client. Counts the running tasks, so a process can
/// wait for their end before the process ends.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// The number of tasks that are running.
    running: Arc<watch::Sender<usize>>,
    /// The async runtime of the first decision whose work may begin outside of a runtime.
    runtime: OnceLock<Handle>,
}

impl Background {
    /// Remembers the current async runtime, in which work also runs if it begins outside of one.
    pub(super) fn remember_runtime(&self) {
        if self.runtime.get().is_none()
            && let Ok(runtime) = Handle::try_current()
        {
            // Another thread may have been first.
            let _ = self.runtime.set(runtime);
        }
    }

    /// Polls `work` once, which completes the work if the store is in memory. Otherwise spawns a
    /// task for the rest of the work. Without an async runtime, uses the one that was remembered.
    /// If there is none, drops the rest of the work.
    pub(super) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let current = Handle::try_current();
        let remembered = if current.is_err() { self.runtime.get() } else { None };
        // Stores with a deadline need a runtime for their timers.
        let _entered = remembered.map(Handle::enter);
        let mut work = Box::pin(work);
        let mut context = Context::from_waker(Waker::noop());
        if work.as_mut().poll(&mut context).is_pending()
            && let Some(runtime) = current.as_ref().ok().or(remembered)
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
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }

    /// Returns `work`, counted from now until its end as a running task.
    fn counted<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let running = Running::begin(&self.running);
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// The defect: a decision that ended in a thread outside of the runtime panicked with a store
    /// that has a deadline.
    #[test]
    fn work_that_begins_outside_of_a_runtime_runs_in_the_remembered_one() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let background = Background::default();
        runtime.block_on(async { background.remember_runtime() });
        let (done, end) = mpsc::channel();
        background.run(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            done.send(()).unwrap();
        });
        end.recv_timeout(Duration::from_secs(60)).expect("the work has ended");
    }
}
