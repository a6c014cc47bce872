//! A time limit on a wait inside of a poll function.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// A time limit on a wait, measured from its start. It costs nothing outside of a wait.
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
    /// Creates a time limit whose wait has not started.
    pub fn new(limit: Duration) -> Self {
        Self { limit, sleep: None, wait: Wait::Idle }
    }

    /// Returns the limit.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Ends the wait.
    pub fn clear(&mut self) {
        self.wait = Wait::Idle;
    }

    /// Starts the wait if it has not started. Ready once the limit has passed.
    pub fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_passed_within(cx, self.limit)
    }

    /// As [`poll_passed`](Self::poll_passed), with another `limit` for a wait that starts now.
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
