//! The result of shedding a request.

use tollgate_core::Millis;
use tollgate_core::policy::Priority;

/// The `Retry-After` of a request for which the fleet has no free slot. Every response frees a
/// slot, so no better estimate exists.
pub const FLEET_RETRY_AFTER: Millis = Millis::from_secs(1);

/// A request that was shed. No limit was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShedDecision {
    /// The priority of the request.
    pub priority: Priority,
    /// The cause.
    pub cause: ShedCause,
    /// The time after which requests of this priority may be admitted again.
    pub retry_after: Millis,
}

/// The kind of load that was too high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShedCause {
    /// Requests in flight across the fleet.
    Fleet,
    /// Requests in flight on this node.
    InFlight,
    /// The time that requests wait on this node.
    QueueDelay,
    /// The delay of this node's tasks.
    LoopDelay,
}

impl ShedCause {
    /// All causes.
    pub const ALL: [Self; 4] = [Self::Fleet, Self::InFlight, Self::QueueDelay, Self::LoopDelay];

    /// Returns the name in responses and metrics.
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
