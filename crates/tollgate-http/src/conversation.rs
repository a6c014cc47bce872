//! The state that the strict reader and the service of a connection share.

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

use crate::{
    close_reason::CloseReason, connections::Evictable, control_frames::StreamObserver,
    framing::Violation,
};

/// The state that the strict reader of a connection and the service that answers its requests
/// share.
#[derive(Debug)]
pub struct Conversation {
    requests: AtomicU64,
    refusal: OnceLock<Refusal>,
    upgrade: Mutex<UpgradeState>,
    is_upgraded: AtomicBool,
    activity: Mutex<Activity>,
    close_reason: OnceLock<CloseReason>,
    close_requested: Notify,
}

/// The refusal of an invalid request, which the reader has replaced by a valid request of its own.
/// The service answers the replacement with the refusal, so the client receives the refusal after
/// the responses to its earlier requests.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    /// The number of the request on this connection, counted from 1.
    ordinal: u64,
    violation: Violation,
}

/// Whether the response to an upgrade request switched the protocol of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeAnswer {
    /// The response has status 101, which means that all later bytes belong to the requested
    /// protocol.
    Accepted,
    /// The response has another status than 101, which means that the next HTTP request follows.
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
    /// Whether bytes wait until the client reads: parts of responses, or control frames of HTTP/2.
    has_unsent: bool,
    /// Whether unsent bytes may be the last ones of a response, whose request is no longer in
    /// flight. Without a request, only answers to pings and similar frames can be unsent.
    owes_response: bool,
    idle_since: Instant,
    /// The time at which the first byte of an incomplete request head arrived, or at which the
    /// connection was accepted.
    head_since: Option<Instant>,
    /// Whether the connection was asked to close, or no longer uses HTTP.
    is_leaving: bool,
}

impl Conversation {
    /// Begins the conversation of a connection that has just been accepted.
    pub fn begin() -> Self {
        Self {
            requests: AtomicU64::new(0),
            refusal: OnceLock::new(),
            upgrade: Mutex::new(UpgradeState::Unanswered(None)),
            is_upgraded: AtomicBool::new(false),
            activity: Mutex::new(Activity {
                in_flight: 0,
                has_unsent: false,
                owes_response: false,
                idle_since: Instant::now(),
                head_since: None,
                is_leaving: false,
            }),
            close_reason: OnceLock::new(),
            close_requested: Notify::new(),
        }
    }

    /// Records that the request with the number `ordinal`, counted from 1, replaces an invalid
    /// request. `violation` is the reason. The connection ends after the response to this request.
    pub fn refuse(&self, ordinal: u64, violation: Violation) {
        // The reader stops at its first refusal, so there is no second refusal.
        let _ = self.refusal.set(Refusal { ordinal, violation });
    }

    /// Counts the next HTTP/1 request. If this request replaces an invalid request, returns the
    /// violation of the invalid request, otherwise `None`.
    pub fn next_request(&self) -> Option<Violation> {
        let ordinal = self.requests.fetch_add(1, Ordering::AcqRel) + 1;
        let refusal = self.refusal.get()?;
        (refusal.ordinal == ordinal).then_some(refusal.violation)
    }

    /// Passes the response to an upgrade request on to the reader of the connection.
    pub fn answer_upgrade(&self, answer: UpgradeAnswer) {
        self.is_upgraded.store(answer == UpgradeAnswer::Accepted, Ordering::Release);
        let before = std::mem::replace(&mut *self.upgrade.lock(), UpgradeState::Answered(answer));
        if let UpgradeState::Unanswered(Some(waker)) = before {
            waker.wake();
        }
    }

    /// Returns the answer to the last upgrade request once the service has reported it, and forgets
    /// the answer.
    pub fn poll_upgrade_answer(&self, cx: &mut Context<'_>) -> Poll<UpgradeAnswer> {
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

    /// Returns whether the connection has switched from HTTP to another protocol.
    pub fn is_upgraded(&self) -> bool {
        self.is_upgraded.load(Ordering::Acquire)
    }

    /// Records that the connection waits for the rest of a request head, or for its first request
    /// head.
    pub fn begin_head(&self) {
        self.activity.lock().head_since.get_or_insert_with(Instant::now);
    }

    /// Records that the request head is complete.
    pub fn end_head(&self) {
        self.activity.lock().head_since = None;
    }

    /// Asks the connection to close for `reason`, as soon as no request is in flight.
    pub fn request_close(&self, reason: CloseReason) {
        self.leave();
        self.note_close(reason);
        self.close_requested.notify_one();
    }

    /// Records that the connection is closing or no longer uses HTTP, so it cannot be evicted.
    pub fn leave(&self) {
        self.activity.lock().is_leaving = true;
    }

    /// Waits until the connection is asked to close.
    pub async fn close_requested(&self) {
        self.close_requested.notified().await;
    }

    /// Records the reason why the connection closes. Later reasons are ignored.
    pub fn note_close(&self, reason: CloseReason) {
        // Later reasons are only consequences of the first reason.
        let _ = self.close_reason.set(reason);
    }

    /// Returns the reason why the connection closed. If no reason was recorded, the client closed
    /// the connection.
    pub fn close_reason(&self) -> CloseReason {
        self.close_reason.get().copied().unwrap_or(CloseReason::Client)
    }

    /// Counts a request as in flight, until [`end_exchange`](Self::end_exchange).
    pub fn begin_exchange(&self) {
        self.activity.lock().in_flight += 1;
    }

    /// Ends a request that [`begin_exchange`](Self::begin_exchange) counted.
    pub fn end_exchange(&self) {
        let mut activity = self.activity.lock();
        activity.in_flight = activity.in_flight.saturating_sub(1);
        activity.owes_response = true;
        activity.idle_since = Instant::now();
    }

    /// Records whether bytes wait until the client reads. While they wait after the end of a
    /// request, the connection is not idle, although no request may be in flight.
    pub(crate) fn note_unsent(&self, has_unsent: bool) {
        let mut activity = self.activity.lock();
        activity.has_unsent = has_unsent;
        if !has_unsent && std::mem::take(&mut activity.owes_response) {
            activity.idle_since = Instant::now();
        }
    }

    /// Waits until the connection has been idle for the duration `limit`: no request was in flight,
    /// and no bytes were unsent after a request.
    pub async fn idle_for(&self, limit: Duration) {
        loop {
            let now = Instant::now();
            let end = match &*self.activity.lock() {
                activity if activity.is_idle() => activity.idle_since + limit,
                _ => now + limit,
            };
            if end <= now {
                return;
            }
            sleep_until(end).await;
        }
    }
}

impl Activity {
    fn is_idle(&self) -> bool {
        self.in_flight == 0 && !(self.has_unsent && self.owes_response)
    }
}

/// A connection is also not evictable while the end of a response has not been passed to the
/// kernel. Over HTTP/2, bytes that wait for the client's flow-control window do not count.
impl Evictable for Conversation {
    fn evictable_since(&self) -> Option<Instant> {
        let activity = self.activity.lock();
        let is_evictable = activity.is_idle() && !activity.is_leaving;
        is_evictable.then(|| activity.head_since.unwrap_or(activity.idle_since))
    }

    fn evict(&self, _since: Instant) {
        self.request_close(CloseReason::Evicted);
    }
}

impl StreamObserver for Conversation {
    fn on_too_many_control_frames(&self) {
        self.note_close(CloseReason::ControlFrames);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The bug: any unsent bytes kept a connection, so an HTTP/2 client that sent only pings, and
    /// read no answer to them, could not be evicted.
    #[tokio::test(start_paused = true)]
    async fn unread_answers_to_pings_kept_a_connection_without_a_request() {
        let conversation = Conversation::begin();
        let began = Instant::now();
        for has_unsent in [true, false] {
            advance(SECOND).await;
            conversation.note_unsent(has_unsent);
            assert_eq!(conversation.evictable_since(), Some(began));
        }
        conversation.note_unsent(true);
        conversation.idle_for(10 * SECOND).await;
        assert_eq!(began.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn the_unread_end_of_a_response_keeps_a_connection() {
        let conversation = Conversation::begin();
        for is_unsent_first in [true, false] {
            conversation.begin_exchange();
            conversation.note_unsent(is_unsent_first);
            conversation.end_exchange();
            conversation.note_unsent(true);
            assert_eq!(conversation.evictable_since(), None);
            advance(SECOND).await;
            conversation.note_unsent(false);
            let sent = Instant::now();
            assert_eq!(conversation.evictable_since(), Some(sent));
            advance(SECOND).await;
            conversation.note_unsent(true);
            assert_eq!(conversation.evictable_since(), Some(sent), "only pings are unread");
            conversation.note_unsent(false);
        }
    }
}
