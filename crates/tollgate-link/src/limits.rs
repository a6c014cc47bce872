//! The timeouts and thresholds of a link.

use std::time::Duration;

/// The default number of consecutive missed deadlines after which the circuit opens.
const DEFAULT_FAILURE_THRESHOLD: u32 = 5;

/// The timeouts and thresholds of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// The number of consecutive calls that may miss their deadline before the circuit opens.
    pub misses: u32,
    /// How long callers wait, within their deadlines, for the first attempt at a new connection.
    pub seek: Duration,
    /// The longest time for opening a connection. No caller waits for it.
    pub connect: Duration,
    /// The longest time for a round trip that verifies the connection. A server slower than the
    /// deadline of decisions is of no use.
    pub proof: Duration,
    /// The time between two queries for the server's state on a connection in use.
    pub heartbeat: Duration,
    /// The longest time for the answer to a heartbeat.
    pub heartbeat_answer: Duration,
    /// A connection that is lost sooner than this counts as a failed probe. This adds a pause
    /// before the next attempt if a server accepts connections and drops them.
    pub proven_after: Duration,
}

impl LinkLimits {
    /// Returns the default limits for decisions that may take as long as `deadline`.
    #[must_use]
    pub fn for_deadline(deadline: Duration) -> Self {
        Self::default().raised_to(deadline)
    }

    /// Returns the limits, raised where necessary for decisions that may take as long as
    /// `deadline`. With shorter ones, a server that is as slow as the deadline allows would never
    /// be connected, or would be lost at its next heartbeat.
    #[must_use]
    pub fn raised_to(self, deadline: Duration) -> Self {
        Self {
            seek: self.seek.max(deadline),
            connect: self.connect.max(deadline),
            proof: self.proof.max(deadline),
            heartbeat_answer: self.heartbeat_answer.max(deadline),
            ..self
        }
    }

    /// Returns the longest time for which a replaced server is still charged after another one
    /// became primary, if the servers report their roles and answer. A primary that was frozen and
    /// returns accepts charges during this time that are later discarded.
    ///
    /// Every server of a Redis shard is queried for its role every half heartbeat, over a connection
    /// that may have to be opened first. No connection charges a server that is known to be replaced.
    #[must_use]
    pub fn gray_failure_max(&self) -> Duration {
        self.discovery_period().saturating_add(self.connect.max(self.heartbeat_answer))
    }

    /// Returns how long a report of a server or a sentinel about the primary is valid. Two queries
    /// in a row may fail before it expires.
    #[must_use]
    pub fn report_ttl(&self) -> Duration {
        let waits = self.connect.max(self.heartbeat_answer);
        self.heartbeat.saturating_mul(2).saturating_add(waits)
    }

    /// Returns the time between two queries to each server of a shard.
    #[must_use]
    pub fn discovery_period(&self) -> Duration {
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
        }
    }
}
