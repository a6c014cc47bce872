//! The timeouts and thresholds of a link.

use std::time::Duration;

use crate::circuit_breaker::DEFAULT_FAILURE_THRESHOLD;

/// The timeouts and thresholds of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// The number of consecutive decisions that may miss their deadline before the circuit opens.
    pub misses: u32,
    /// How long callers wait, within their deadlines, for the first attempt at a new connection.
    pub seek: Duration,
    /// The longest time for opening a connection. No caller waits for it.
    pub connect: Duration,
    /// The longest time for the round trip that verifies a connection. A server slower than the
    /// deadline of decisions is of no use.
    pub proof: Duration,
    /// The time between two queries for role and time on a connection in use.
    pub heartbeat: Duration,
    /// The longest time for the answer to such a query.
    pub heartbeat_answer: Duration,
    /// A connection that is lost sooner than this counts as a failed probe. This adds a pause
    /// before the next attempt if a server accepts connections and drops them.
    pub proven_after: Duration,
    /// The time for which a call waits, within its deadline, for the answer of a connection that is
    /// being replaced. A demoted server still reports which calls it did not execute. Nothing else
    /// is sent to the shard during this time.
    pub last_words: Duration,
}

impl LinkLimits {
    /// Returns the limits for decisions that may take as long as `deadline`. With the default
    /// limits, a server that is as slow as the deadline allows would never be connected, or would
    /// be lost at its next heartbeat.
    #[must_use]
    pub fn for_deadline(deadline: Duration) -> Self {
        let usual = Self::default();
        Self {
            seek: usual.seek.max(deadline),
            connect: usual.connect.max(deadline),
            proof: usual.proof.max(deadline),
            heartbeat_answer: usual.heartbeat_answer.max(deadline),
            ..usual
        }
    }

    /// Returns the longest time for which a replaced server is still charged after another one
    /// became primary, if the servers permit `INFO` and answer. A primary that was frozen and
    /// returns accepts charges during this time that are later discarded.
    ///
    /// Every server of a shard is queried for its role every half heartbeat, over a connection that
    /// may have to be opened first. No connection charges a server that is known to be replaced.
    #[must_use]
    pub fn gray_failure_max(&self) -> Duration {
        self.discovery_period().saturating_add(self.connect.max(self.heartbeat_answer))
    }

    /// Returns how long a report of a server or a sentinel about the primary is valid. Two queries
    /// in a row may fail before it expires.
    pub(crate) fn report_ttl(&self) -> Duration {
        let waits = self.connect.max(self.heartbeat_answer);
        self.heartbeat.saturating_mul(2).saturating_add(waits)
    }

    /// Returns the time between two queries to each server of a shard.
    pub(crate) fn discovery_period(&self) -> Duration {
        self.heartbeat / 2
    }
}

impl Default for LinkLimits {
    fn default() -> Self {
        Self {
            misses: DEFAULT_FAILURE_THRESHOLD,
            seek: Duration::from_millis(15),
            connect: Duration::from_millis(500),
            proof: Duration::from_millis(15),
            heartbeat: Duration::from_secs(1),
            heartbeat_answer: Duration::from_millis(250),
            proven_after: Duration::from_millis(100),
            last_words: Duration::from_millis(250),
        }
    }
}
