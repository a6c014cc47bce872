//! What became of a request that was shed.

use tollgate_core::Millis;
use tollgate_core::policy::Priority;

/// When a request may try again that the fleet had no place for: places come free with every
/// answer, so that nobody knows better.
pub const FLEET_RETRY_AFTER: Millis = Millis::from_secs(1);

/// A request that was shed: it was charged nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShedDecision {
    /// How much it matters.
    pub priority: Priority,
    /// What there was too much of.
    pub cause: ShedCause,
    /// When requests that matter as much have a chance again.
    pub retry_after: Millis,
}

/// What there was too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShedCause {
    /// Requests in flight across the fleet.
    Fleet,
    /// Requests in flight in this node.
    InFlight,
    /// Waiting in this node.
    QueueDelay,
    /// Lateness of this node's tasks.
    LoopDelay,
}

impl ShedCause {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Fleet, Self::InFlight, Self::QueueDelay, Self::LoopDelay];

    /// The word for it, in answers and metrics.
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
