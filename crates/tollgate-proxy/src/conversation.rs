use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::framing::Violation;

/// What the reader of a client's bytes and the service that answers its requests tell each other.
#[derive(Debug)]
pub(crate) struct Conversation {
    requests: AtomicU64,
    refusal: OnceLock<Refusal>,
    upgrade: Mutex<UpgradeState>,
    activity: Mutex<Activity>,
}

/// A request that the reader made up in place of an unsound one, so that its answer takes its turn among the others.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    /// Which request of the connection it is, counted from 1.
    ordinal: u64,
    violation: Violation,
}

/// Whether the answer to an upgrade request changed the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpgradeAnswer {
    /// 101: every later byte is the other protocol's.
    Accepted,
    /// Anything else: the next request follows.
    Declined,
}

#[derive(Debug)]
enum UpgradeState {
    Unanswered(Option<Waker>),
    Answered(UpgradeAnswer),
}

#[derive(Debug)]
struct Activity {
    in_flight: u64,
    idle_since: Instant,
}

impl Conversation {
    pub(crate) fn begin() -> Self {
        Self {
            requests: AtomicU64::new(0),
            refusal: OnceLock::new(),
            upgrade: Mutex::new(UpgradeState::Unanswered(None)),
            activity: Mutex::new(Activity { in_flight: 0, idle_since: Instant::now() }),
        }
    }

    /// Says that the request `ordinal`, counted from 1, stands for an unsound one. It is the connection's last.
    pub(crate) fn refuse(&self, ordinal: u64, violation: Violation) {
        // The reader stops at its first refusal, so that there is no second.
        let _ = self.refusal.set(Refusal { ordinal, violation });
    }

    /// Counts the next HTTP/1 request; tells if it stands for an unsound one.
    pub(crate) fn next_request(&self) -> Option<Violation> {
        let ordinal = self.requests.fetch_add(1, Ordering::AcqRel) + 1;
        let refusal = self.refusal.get()?;
        (refusal.ordinal == ordinal).then_some(refusal.violation)
    }

    /// Tells the reader how an upgrade request was answered.
    pub(crate) fn answer_upgrade(&self, answer: UpgradeAnswer) {
        let before = std::mem::replace(&mut *self.upgrade.lock(), UpgradeState::Answered(answer));
        if let UpgradeState::Unanswered(Some(waker)) = before {
            waker.wake();
        }
    }

    /// Takes the answer to the last upgrade request once it is there.
    pub(crate) fn poll_upgrade_answer(&self, cx: &mut Context<'_>) -> Poll<UpgradeAnswer> {
        let mut state = self.upgrade.lock();
        match *state {
            UpgradeState::Answered(answer) => {
                *state = UpgradeState::Unanswered(None);
                Poll::Ready(answer)
            }
            UpgradeState::Unanswered(_) => {
                *state = UpgradeState::Unanswered(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }

    pub(crate) fn begin_exchange(&self) {
        self.activity.lock().in_flight += 1;
    }

    pub(crate) fn end_exchange(&self) {
        let mut activity = self.activity.lock();
        activity.in_flight = activity.in_flight.saturating_sub(1);
        activity.idle_since = Instant::now();
    }

    /// Waits until no request has been in flight for `limit`.
    pub(crate) async fn idle_for(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let end = match &*self.activity.lock() {
                Activity { in_flight: 0, idle_since } => *idle_since + limit,
                _ => now + limit,
            };
            if end <= now {
                return;
            }
            sleep_until(end).await;
        }
    }
}
