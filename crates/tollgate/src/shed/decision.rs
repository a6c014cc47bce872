//! The error of a request that load shedding refuses.

use tollgate_core::Millis;
use tollgate_core::policy::Priority;

/// The `Retry-After` of a request for which the fleet has no free slot. A slot is freed whenever a
/// response ends, so no better estimate of the wait exists.
pub const FLEET_RETRY_AFTER: Millis = Millis::from_secs(1);

/// The decision to shed a request. No limit was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShedDecision {
    /// The priority of the request that was shed.
    pub priority: Priority,
    /// The kind of load because of which the request was shed.
    pub cause: ShedCause,
    /// The time after which requests of this priority may be admitted again.
    pub retry_after: Millis,
}

/// The kind of load that was too high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShedCause {
    /// The number of requests in flight on all nodes of the fleet.
    Fleet,
    /// The number of requests in flight on this node.
    InFlight,
    /// The time that requests wait on this node before the service begins to serve them.
    QueueDelay,
    /// The delay with which this node's tasks run.
    LoopDelay,
}

impl ShedCause {
    /// All causes.
    pub const ALL: [Self; 4] = [Self::Fleet, Self::InFlight, Self::QueueDelay, Self::LoopDelay];

    /// Returns the name of the cause in responses and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fleet => "fleet",
            Self::InFlight => "in_flight",
            Self::QueueDelay => "queue_delay",
            Self::LoopDelay => "loop_delay",
        }
    }
}
