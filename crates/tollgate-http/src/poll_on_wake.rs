//! A wrapper for futures that are rarely ready, and that share their task with a future that is
//! often ready.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use pin_project_lite::pin_project;

pin_project! {
    /// A future that is polled only after it was woken, instead of whenever its task runs.
    ///
    /// A connection's task runs for every request, and always waits for the shutdown and for
    /// deadlines that rarely expire. Polling each of these futures every time took 1/30 of the time
    /// of a decision over HTTP.
    #[derive(Debug)]
    pub struct PollOnWake<F> {
        #[pin]
        future: F,
        flag: Arc<WakeFlag>,
        flag_waker: Waker,
        task: Option<Waker>,
    }
}

/// A flag that a wake-up sets, and the waker of the task to wake.
#[derive(Debug)]
struct WakeFlag {
    is_woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<F: Future> PollOnWake<F> {
    /// Wraps `future`. The first poll of the wrapper always polls `future`.
    pub fn new(future: F) -> Self {
        let flag = Arc::new(WakeFlag { is_woken: AtomicBool::new(true), task: AtomicWaker::new() });
        let flag_waker = Waker::from(Arc::clone(&flag));
        Self { future, flag, flag_waker, task: None }
    }

    /// Returns a reference to the future.
    pub const fn get_ref(&self) -> &F {
        &self.future
    }

    /// Changes the future. The next poll of the wrapper polls the future, even if the future was
    /// not woken.
    pub fn change(self: Pin<&mut Self>, change: impl FnOnce(Pin<&mut F>)) {
        let this = self.project();
        this.flag.is_woken.store(true, Ordering::Relaxed);
        change(this.future);
    }
}

impl<F: Future> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let is_known = this.task.as_ref().is_some_and(|task| task.will_wake(cx.waker()));
        // A wake-up consumes the registered waker.
        if !is_known || this.flag.is_woken.load(Ordering::Acquire) {
            // Register the waker before the flag is cleared. A later wake-up then wakes this task,
            // and an earlier wake-up has set the flag.
            this.flag.task.register(cx.waker());
            *this.task = Some(cx.waker().clone());
        }
        // Clear the flag before the future is polled: a wake-up during the poll counts for the next
        // poll.
        let is_woken = &this.flag.is_woken;
        if !is_woken.load(Ordering::Relaxed) || !is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        this.future.poll(&mut Context::from_waker(this.flag_waker))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::time::Duration;

    use tokio::sync::{mpsc, oneshot};

    use super::*;

    #[tokio::test]
    async fn it_is_polled_when_it_was_woken_or_changed_and_not_else() {
        let (sender, mut receiver) = oneshot::channel::<()>();
        let polls = Cell::new(0);
        let counted = poll_fn(|cx| {
            polls.set(polls.get() + 1);
            Pin::new(&mut receiver).poll(cx)
        });
        let mut seldom = pin!(PollOnWake::new(counted));
        for _ in 0..3 {
            assert!(poll_fn(|cx| Poll::Ready(seldom.as_mut().poll(cx))).await.is_pending());
        }
        seldom.as_mut().change(|_| {});
        assert!(poll_fn(|cx| Poll::Ready(seldom.as_mut().poll(cx))).await.is_pending());
        tokio::spawn(async move { sender.send(()) });
        // Nothing else wakes this task.
        seldom.as_mut().await.unwrap();
        assert_eq!(polls.get(), 3);
    }

    /// A moved deadline wakes the task once more when its new time has passed.
    #[tokio::test]
    async fn it_wakes_its_task_every_time_that_it_rings() {
        const RINGS: usize = 3;
        let (sender, mut receiver) = mpsc::channel::<()>(1);
        let mut woken = 0;
        let counted = poll_fn(|cx| {
            while let Poll::Ready(Some(())) = receiver.poll_recv(cx) {
                woken += 1;
            }
            if woken == RINGS { Poll::Ready(()) } else { Poll::Pending }
        });
        let seldom = pin!(PollOnWake::new(counted));
        tokio::spawn(async move {
            for _ in 0..RINGS {
                sender.send(()).await.unwrap();
                // The other task runs in between.
                tokio::task::yield_now().await;
            }
            // Keep the sender: the end of the channel would wake the task, too.
            std::future::pending::<()>().await;
        });
        tokio::time::timeout(Duration::from_secs(30), seldom).await.unwrap();
    }
}
