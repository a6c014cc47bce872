//! Counters of mistakes that clients of a listener make.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The shortest time between two log lines with the same warning about the clients of a listener.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// The reason why a listener closed a connection that its client would have kept open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// No request came within [`first_byte`](crate::ConnectionLimits::first_byte).
    NoRequest,
    /// A request head or a command stayed incomplete for
    /// [`request`](crate::ConnectionLimits::request).
    SlowRequest,
    /// The client sent too many HTTP/2 frames that are not requests.
    ControlFrames,
    /// Incomplete commands of all connections needed more than
    /// [`MAX_COMMAND_MEMORY`](crate::resp::MAX_COMMAND_MEMORY).
    CommandMemory,
}

impl CloseReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 4] =
        [Self::NoRequest, Self::SlowRequest, Self::ControlFrames, Self::CommandMemory];

    /// Returns the name for metrics and log lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoRequest => "no_request",
            Self::SlowRequest => "slow_request",
            Self::ControlFrames => "control_frames",
            Self::CommandMemory => "command_memory",
        }
    }

    const fn warning(self) -> &'static str {
        match self {
            Self::NoRequest => "closed connections that sent no request",
            Self::SlowRequest => "closed connections: a request or command arrived too slowly",
            Self::ControlFrames => "closed connections: too many HTTP/2 control frames",
            Self::CommandMemory => {
                "closed connections: incomplete commands of all clients use too much memory"
            }
        }
    }
}

/// The counters of one listener.
#[derive(Debug)]
pub struct ListenerCounters {
    listener: &'static str,
    wrong_tokens: Counter,
    closed: [Counter; CloseReason::ALL.len()],
}

/// A counter whose increases are logged, at most once in [`WARN_EVERY`].
#[derive(Debug, Default)]
struct Counter {
    total: AtomicU64,
    logged: Mutex<Option<(Instant, u64)>>,
}

impl ListenerCounters {
    pub(crate) fn new(listener: &'static str) -> Self {
        Self { listener, wrong_tokens: Counter::default(), closed: Default::default() }
    }

    /// Returns how often clients sent a token that is not a token of the listener.
    #[must_use]
    pub fn wrong_tokens(&self) -> u64 {
        self.wrong_tokens.total.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that were closed for `reason`.
    #[must_use]
    pub fn closed(&self, reason: CloseReason) -> u64 {
        self.closed[reason as usize].total.load(Ordering::Relaxed)
    }

    pub(crate) fn count_wrong_token(&self, peer: Option<SocketAddr>) {
        let Some(tokens) = self.wrong_tokens.add() else { return };
        let last_address = address(peer);
        tracing::warn!(
            listener = self.listener,
            tokens,
            last_address,
            "rejected clients with an invalid token: it is outdated or guessed"
        );
    }

    pub(crate) fn count_closed(&self, reason: CloseReason, peer: Option<SocketAddr>) {
        let Some(closed) = self.closed[reason as usize].add() else { return };
        let (last_address, warning) = (address(peer), reason.warning());
        tracing::warn!(
            listener = self.listener,
            reason = reason.name(),
            closed,
            last_address,
            "{warning}"
        );
    }
}

impl Counter {
    /// Adds one to the counter. If a log line is due, returns the increase of the counter since the
    /// last log line, otherwise `None`.
    fn add(&self) -> Option<u64> {
        let total = self.total.fetch_add(1, Ordering::Relaxed) + 1;
        let mut logged = self.logged.lock();
        let before = match *logged {
            Some((at, _)) if at.elapsed() < WARN_EVERY => return None,
            Some((_, before)) => before,
            None => 0,
        };
        *logged = Some((Instant::now(), total));
        Some(total.saturating_sub(before))
    }
}

fn address(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "unix".to_owned(), |peer| peer.ip().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter() {
        let counters = ListenerCounters::new("test");
        for (times, reason) in CloseReason::ALL.into_iter().enumerate() {
            (0..=times).for_each(|_| counters.count_closed(reason, None));
        }
        for (times, reason) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(counters.closed(reason), times as u64 + 1, "{reason:?}");
        }
        assert_eq!(counters.wrong_tokens(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_warning_names_the_increase_since_the_last_one() {
        let counter = Counter::default();
        assert_eq!(counter.add(), Some(1));
        assert_eq!(counter.add(), None);
        assert_eq!(counter.add(), None);
        tokio::time::advance(WARN_EVERY).await;
        assert_eq!(counter.add(), Some(3));
    }
}
