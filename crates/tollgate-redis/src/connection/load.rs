//! Counts the calls in flight on one connection.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use tokio::time::{Instant, timeout};

/// The time without a call after which an additional connection is closed. A firewall may have
/// dropped the state of a connection that was idle for longer.
const CONNECTION_IDLE_MAX: Duration = Duration::from_secs(30);

/// The longest delay of a reply on an additional connection. If a reply takes longer, the
/// connection is closed and replaced.
const STALL_MAX: Duration = Duration::from_millis(250);

/// The calls in flight on a connection.
#[derive(Debug)]
pub(crate) struct Load(Mutex<Calls>);

#[derive(Debug)]
struct Calls {
    /// The number of calls that have no reply yet.
    in_flight: usize,
    /// The number of calls in flight without a waiting caller.
    abandoned: usize,
    /// Whether a task already waits until the server has answered the abandoned calls.
    is_probed: bool,
    /// The time at which the last call was sent, or at which the connection was opened if no call
    /// was sent.
    used_at: Instant,
    /// The time since which the server owes an answer to a call in flight: the time of the server's
    /// last answer, or, if a later call was sent while no other call was in flight, the time at
    /// which that call was sent.
    progress_at: Instant,
    /// Whether a reply on the connection was delayed for [`STALL_MAX`].
    has_stalled: bool,
}

impl Calls {
    fn begin(&mut self) {
        let now = Instant::now();
        if self.in_flight == 0 {
            self.progress_at = now;
        }
        self.in_flight += 1;
        self.used_at = now;
    }
}

impl Load {
    /// Returns the load of a new connection.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Calls {
            in_flight: 0,
            abandoned: 0,
            is_probed: false,
            used_at: Instant::now(),
            progress_at: Instant::now(),
            has_stalled: false,
        }))
    }

    /// Counts a call that is about to be sent.
    pub(crate) fn begin(&self) {
        self.0.lock().begin();
    }

    /// Counts a call if no call is in flight. Returns whether the call was counted.
    pub(crate) fn begin_if_idle(&self) -> bool {
        let mut calls = self.0.lock();
        let is_idle = calls.in_flight == 0;
        if is_idle {
            calls.begin();
        }
        is_idle
    }

    /// Records that the server has answered a call.
    pub(crate) fn end(&self) {
        let mut calls = self.0.lock();
        calls.in_flight = calls.in_flight.saturating_sub(1);
        calls.progress_at = Instant::now();
    }

    /// Returns the sort key by which a connection is chosen for a new call. The first value is true
    /// for connections with an abandoned call or a delayed reply, which are last. The second value
    /// is the number of calls in flight: connections with fewer calls come first. A reply is
    /// delayed if it takes longer than `overdue_after`.
    pub(crate) fn order(&self, overdue_after: Duration) -> (bool, usize) {
        let calls = self.0.lock();
        let is_overdue = calls.in_flight > 0 && calls.progress_at.elapsed() > overdue_after;
        (calls.abandoned > 0 || is_overdue, calls.in_flight)
    }

    /// Returns whether the connection should be kept. A connection is kept if no reply on it was
    /// delayed for [`STALL_MAX`], and if the connection is in use or was used recently.
    pub(crate) fn is_fit(&self, now: Instant) -> bool {
        let calls = self.0.lock();
        let is_idle = now.saturating_duration_since(calls.used_at) >= CONNECTION_IDLE_MAX;
        !calls.has_stalled && (calls.in_flight > 0 || !is_idle)
    }

    /// Counts a call as abandoned, because its caller no longer waits for the reply. Returns true
    /// if the caller of this function has to start [`Self::settle`].
    pub(crate) fn abandon(&self) -> bool {
        let mut calls = self.0.lock();
        calls.abandoned += 1;
        !std::mem::replace(&mut calls.is_probed, true)
    }

    /// Waits until the server has answered every abandoned call, or until the connection has ended.
    /// To detect the answers, sends `PING`, which the server answers after these calls.
    ///
    /// If the server answers no call for [`STALL_MAX`], an additional connection is marked as
    /// stalled. The next call or heartbeat closes the marked connection, which ends this wait. The
    /// heartbeat also closes the first connection if that connection does not answer.
    pub(crate) async fn settle(self: Arc<Self>, mut handle: MultiplexedConnection) {
        let ping = redis::cmd("PING");
        loop {
            let before = self.0.lock().abandoned;
            let mut pong = pin!(handle.send_packed_command(&ping));
            let answer = match timeout(STALL_MAX, pong.as_mut()).await {
                Ok(answer) => answer,
                Err(_) => {
                    self.0.lock().has_stalled = true;
                    pong.await
                }
            };
            if answer.is_err() {
                return;
            }
            let mut calls = self.0.lock();
            calls.abandoned = calls.abandoned.saturating_sub(before);
            calls.in_flight = calls.in_flight.saturating_sub(before);
            if calls.abandoned == 0 {
                calls.is_probed = false;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_without_calls_is_kept_for_a_while_and_then_closed() {
        let (load, now) = (Load::new(), Instant::now());
        let later = now + CONNECTION_IDLE_MAX + Duration::from_secs(1);
        assert!(load.is_fit(now));
        assert!(!load.is_fit(later), "never used");
        assert!(load.begin_if_idle() && !load.begin_if_idle());
        assert!(load.is_fit(later), "in use");
        load.end();
        assert!(!load.is_fit(later));
    }

    #[test]
    fn connections_that_delay_replies_sort_last_and_one_task_waits_for_abandoned_calls() {
        const LONG: Duration = Duration::from_secs(60);
        let (load, other) = (Load::new(), Load::new());
        load.begin();
        other.begin();
        other.begin();
        assert!(load.order(LONG) < other.order(LONG), "fewer calls");
        assert!(load.order(Duration::ZERO) > other.order(LONG), "an overdue call");
        assert!(load.abandon(), "the first starts the task");
        load.begin();
        assert!(!load.abandon(), "the task waits for all");
        assert!(other.order(LONG) < load.order(LONG));
    }
}
