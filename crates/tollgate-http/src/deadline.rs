//! A time limit on a wait inside a poll function.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// A time limit on a wait, measured from the start of the wait. While nothing waits, a deadline
/// costs no processor time.
#[derive(Debug)]
pub struct Deadline {
    limit: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    wait: Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Idle,
    Running,
}

impl Deadline {
    /// Creates a time limit of `limit`. No wait has started yet.
    pub fn new(limit: Duration) -> Self {
        Self { limit, sleep: None, wait: Wait::Idle }
    }

    /// Returns the length of the time limit.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Ends the wait. The next wait has the whole time limit again.
    pub fn clear(&mut self) {
        self.wait = Wait::Idle;
    }

    /// Starts the wait if it has not started yet. Returns `Ready` once the wait has taken longer
    /// than the limit.
    pub fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_passed_within(cx, self.limit)
    }

    /// Works like [`poll_passed`](Self::poll_passed). The only difference is that a wait which this
    /// call starts has the time limit `limit`, and not the time limit of the deadline.
    pub fn poll_passed_within(&mut self, cx: &mut Context<'_>, limit: Duration) -> Poll<()> {
        let sleep = match (&mut self.sleep, self.wait) {
            (Some(sleep), Wait::Running) => sleep,
            (slot, _) => {
                self.wait = Wait::Running;
                let end = Instant::now() + limit;
                let sleep = slot.get_or_insert_with(|| Box::pin(sleep_until(end)));
                sleep.as_mut().reset(end);
                sleep
            }
        };
        sleep.as_mut().poll(cx)
    }
}

/// A timer for an end time that changes often, usually to a later time.
///
/// After a change to a later time, the runtime's timer is set again only when the earlier end time
/// has passed, so the change itself costs nearly no processor time. Setting and removing a runtime
/// timer for each of many short waits would take longer than the waits themselves.
#[derive(Debug, Default)]
pub struct MovingTimer(Option<Pin<Box<Sleep>>>);

impl MovingTimer {
    /// Returns `Ready` once the time `end` has passed. The task may also be woken before `end`, if
    /// an earlier call had set the runtime's timer to an earlier time.
    pub fn poll_passed(&mut self, cx: &mut Context<'_>, end: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if end < sleep.deadline() {
            sleep.as_mut().reset(end);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_timer_fires_at_its_last_time() {
        let (began, mut timer) = (Instant::now(), MovingTimer::default());
        for seconds in [3, 5, 4, 10] {
            let end = began + seconds * SECOND;
            let polled = poll_fn(|cx| Poll::Ready(timer.poll_passed(cx, end))).await;
            assert!(polled.is_pending());
        }
        for seconds in [10, 12, 11, 20] {
            let end = began + seconds * SECOND;
            poll_fn(|cx| timer.poll_passed(cx, end)).await;
            assert!(Instant::now() >= end, "{seconds}");
        }
        assert!(Instant::now() < began + 21 * SECOND);
    }
}
