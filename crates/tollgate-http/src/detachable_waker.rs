//! A waker that wakes a task only while the task is attached.

use std::sync::Arc;
use std::task::{Wake, Waker};

use futures_util::task::AtomicWaker;

/// The waker of a connection that several tasks drive in turn.
///
/// A connection registers this waker, and the task that waits for the connection is attached to it.
/// While no task is attached, a wake-up has no effect. A task that is about to drive the connection
/// anyway detaches itself, so the connection does not make the task run once more.
#[derive(Debug)]
pub struct DetachableWaker {
    task: Arc<AttachedTask>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct AttachedTask(AtomicWaker);

impl Wake for AttachedTask {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

impl DetachableWaker {
    /// Creates a waker without an attached task.
    #[must_use]
    pub fn new() -> Self {
        let task = Arc::<AttachedTask>::default();
        Self { waker: Waker::from(Arc::clone(&task)), task }
    }

    /// Attaches the task of `waker`, and returns the waker for the connection. The next wake-up
    /// wakes this task and detaches it. Attach the task before each poll of the connection.
    pub fn attach(&self, waker: &Waker) -> &Waker {
        self.task.0.register(waker);
        &self.waker
    }

    /// Detaches the task. Until a task is attached again, the connection wakes no task.
    pub fn detach(&self) {
        drop(self.task.0.take());
    }
}

impl Default for DetachableWaker {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn only_the_task_that_was_attached_last_is_woken() {
        let wakes = [Arc::<Wakes>::default(), Arc::default()];
        let [one, other] = wakes.clone().map(Waker::from);
        let woken = || wakes.clone().map(|wakes| wakes.0.load(Ordering::Relaxed));
        let detachable = DetachableWaker::default();
        let connection = detachable.attach(&one).clone();
        detachable.attach(&other);
        connection.wake_by_ref();
        assert_eq!(woken(), [0, 1]);
        connection.wake_by_ref();
        assert_eq!(woken(), [0, 1], "a wake-up detaches the task");
        detachable.attach(&one);
        detachable.detach();
        connection.wake_by_ref();
        assert_eq!(woken(), [0, 1]);
        detachable.attach(&one);
        connection.wake();
        assert_eq!(woken(), [1, 1]);
    }
}
