use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// A time limit on a wait, measured from its start. It costs nothing outside of a wait.
#[derive(Debug)]
pub(crate) struct Deadline {
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
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, sleep: None, wait: Wait::Idle }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Ends the wait.
    pub(crate) fn clear(&mut self) {
        self.wait = Wait::Idle;
    }

    /// Starts the wait if it has not started. Ready once the limit has passed.
    pub(crate) fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_passed_within(cx, self.limit)
    }

    /// As [`poll_passed`](Self::poll_passed), with another `limit` for a wait that starts now.
    pub(crate) fn poll_passed_within(&mut self, cx: &mut Context<'_>, limit: Duration) -> Poll<()> {
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
