use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{CloseReason, framing::Violation};

/// What the reader of a client's bytes and the service that answers its requests tell each other.
#[derive(Debug)]
pub(crate) struct Conversation {
    requests: AtomicU64,
    refusal: OnceLock<Refusal>,
    upgrade: Mutex<UpgradeState>,
    is_upgraded: AtomicBool,
    activity: Mutex<Activity>,
    close_reason: OnceLock<CloseReason>,
    close_asked: Notify,
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
    /// When the first byte of an incomplete request head came, or the connection began.
    head_since: Option<Instant>,
    /// It was asked to close, or is not served as HTTP any more.
    is_leaving: bool,
}

impl Conversation {
    pub(crate) fn begin() -> Self {
        Self {
            requests: AtomicU64::new(0),
            refusal: OnceLock::new(),
            upgrade: Mutex::new(UpgradeState::Unanswered(None)),
            is_upgraded: AtomicBool::new(false),
            activity: Mutex::new(Activity {
                in_flight: 0,
                idle_since: Instant::now(),
                head_since: None,
                is_leaving: false,
            }),
            close_reason: OnceLock::new(),
            close_asked: Notify::new(),
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
        self.is_upgraded.store(answer == UpgradeAnswer::Accepted, Ordering::Release);
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

    /// Whether the connection speaks another protocol than HTTP now.
    pub(crate) fn is_upgraded(&self) -> bool {
        self.is_upgraded.load(Ordering::Acquire)
    }

    /// Notes that a request head is incomplete.
    pub(crate) fn begin_head(&self) {
        self.activity.lock().head_since.get_or_insert_with(Instant::now);
    }

    /// Notes that the request head is complete.
    pub(crate) fn end_head(&self) {
        self.activity.lock().head_since = None;
    }

    /// Since when the connection has been idle or its request head incomplete; `None` while a request is in flight and
    /// once the connection was asked to close.
    pub(crate) fn evictable_since(&self) -> Option<Instant> {
        let activity = self.activity.lock();
        let is_evictable = activity.in_flight == 0 && !activity.is_leaving;
        is_evictable.then(|| activity.head_since.unwrap_or(activity.idle_since))
    }

    /// Asks the connection to close, to make room for another.
    pub(crate) fn evict(&self) {
        self.ask_to_close(CloseReason::Evicted);
    }

    /// Asks the connection to close once nothing is in flight on it.
    pub(crate) fn ask_to_close(&self, reason: CloseReason) {
        self.leave();
        self.note_close(reason);
        self.close_asked.notify_one();
    }

    /// Notes that the connection is not to be evicted any more.
    pub(crate) fn leave(&self) {
        self.activity.lock().is_leaving = true;
    }

    /// Waits until somebody asks the connection to close.
    pub(crate) async fn close_asked(&self) {
        self.close_asked.notified().await;
    }

    /// Notes why the connection closes; the first reason stays.
    pub(crate) fn note_close(&self, reason: CloseReason) {
        // Later reasons are only consequences of the first.
        let _ = self.close_reason.set(reason);
    }

    /// Why the connection closes. Unless the proxy closes it, its client does.
    pub(crate) fn close_reason(&self) -> CloseReason {
        self.close_reason.get().copied().unwrap_or(CloseReason::Client)
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
                Activity { in_flight: 0, idle_since, .. } => *idle_since + limit,
                _ => now + limit,
            };
            if end <= now {
                return;
            }
            sleep_until(end).await;
        }
    }
}
