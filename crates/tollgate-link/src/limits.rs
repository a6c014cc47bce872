//! The timeouts and thresholds of a link.

use std::time::Duration;

/// The default number of consecutive missed deadlines after which the circuit opens.
const DEFAULT_FAILURE_THRESHOLD: u32 = 5;

/// The timeouts and thresholds of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimits {
    /// The number of consecutive decisions that must miss their deadline before the circuit opens.
    pub misses: u32,
    /// The longest time for which callers wait, within their deadlines, for the first attempt to
    /// open a new connection. During later attempts, callers do not wait.
    pub seek: Duration,
    /// The longest time for opening a connection. Callers wait for a connection only for the time
    /// [`seek`](Self::seek).
    pub connect: Duration,
    /// The longest time for the round trip that verifies a new connection. A server that is slower
    /// than the deadline of decisions cannot be used.
    pub proof: Duration,
    /// The time between two queries for the server's state on a connection in use.
    pub heartbeat: Duration,
    /// The longest time for the answer to a heartbeat.
    pub heartbeat_answer: Duration,
    /// The time for which a connection must last to count as a success. The loss of a connection
    /// within this time counts as a failed probe, so the next attempt has a delay even if the
    /// server accepts connections and drops them at once.
    pub proven_after: Duration,
}

impl LinkLimits {
    /// Returns the default limits for decisions that may take as long as `deadline`.
    #[must_use]
    pub fn for_deadline(deadline: Duration) -> Self {
        Self::default().raised_to(deadline)
    }

    /// Returns these limits, with every time raised that is too short for decisions with the
    /// deadline `deadline`. Without this change, a link would never connect to a server that is as
    /// slow as the deadline allows, or would drop the connection at the next heartbeat.
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

    /// Returns the longest time for which nodes still charge an old primary after another server
    /// became the primary. The bound holds if the servers answer and report their roles. For
    /// example, an old primary that was frozen and returns accepts charges during this time. These
    /// charges are discarded later.
    ///
    /// Each node queries every server of a Redis shard for its role every half heartbeat, over a
    /// connection that may have to be opened first. As soon as a node has received a report that a
    /// server is replaced, the node does not charge that server any more.
    #[must_use]
    pub fn gray_failure_max(&self) -> Duration {
        self.discovery_period().saturating_add(self.connect.max(self.heartbeat_answer))
    }

    /// Returns the time for which a report about the primary is valid. A server or a sentinel sends
    /// this report when a node queries it. The report stays valid even if the next two queries
    /// fail.
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
