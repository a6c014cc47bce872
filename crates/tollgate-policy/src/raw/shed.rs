//! What is shed when there is more to do than can be done, as written.

use tollgate_core::policy::Priority;
use tollgate_core::policy::shedding::ShedMode;

use crate::decode::{Duration, Percent, Whole, keys, words};

keys! {
    /// What is shed when there is more to do than can be done: refused with 503, before any limit is charged, what matters least first.
    struct Shed as "shedding" {
        /// The switch over all shedders: it can calm each of them, and rouse none. By default `enforce`.
        mode: ShedModeName,
        /// By what all nodes have in flight together.
        fleet: Fleet,
        /// By the load of the node that serves the request.
        worker: Worker,
    }
}

keys! {
    /// A pool of requests in flight across all nodes, of which a share is kept for critical ones.
    struct Fleet as "a fleet", requires "capacity" {
        /// How many requests may be in flight in all nodes together, 2 to 10,000.
        capacity: Whole,
        /// The share of them that only critical requests get. By default `20%`.
        reserve_critical: Percent,
        /// How long a permit is valid if its node does not renew it. A node renews the permits of running requests. By default `60s`.
        permit_ttl: Duration,
        /// Whether it sheds. By default `enforce`.
        mode: ShedModeName,
    }
}

keys! {
    /// What a node may carry: at least one of these. Whatever there is most of, measured by its bound, decides.
    struct Worker as "a worker" {
        /// How many requests it may have in flight.
        in_flight: Whole,
        /// How many requests it may have in flight, found out from how they are answered.
        adaptive: Adaptive,
        /// How long requests may wait in it before they are passed on, such as `50ms`.
        queue_delay: Duration,
        /// How late its tasks may run, such as `50ms`.
        loop_delay: Duration,
        /// Whether it sheds. By default `enforce`.
        mode: ShedModeName,
    }
}

keys! {
    /// A bound that follows how the service answers.
    struct Adaptive as "an adaptive bound", requires "algorithm", "min", "max" {
        /// How it follows.
        algorithm: AdaptiveName,
        /// Never less than this, and this at the start.
        min: Whole,
        /// Never more than this.
        max: Whole,
        /// Of `aimd`: the longest that the head of an answer may take. By default `5s`.
        timeout: Duration,
    }
}

/// How an adaptive bound follows the service, without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdaptiveKind {
    Gradient,
    Aimd,
}

words! {
    /// How an adaptive bound follows the service.
    struct AdaptiveName(AdaptiveKind) as "an adaptive algorithm" {
        /// By how long answers take now beside how long they took, after Gradient2 of Netflix's concurrency-limits.
        "gradient" => AdaptiveKind::Gradient,
        /// One more with each answer in time, a tenth less with each that fails or takes too long.
        "aimd" => AdaptiveKind::Aimd,
    }
}

words! {
    /// Whether a shedder sheds.
    struct ShedModeName(ShedMode) as "a mode" {
        /// What is to be shed is shed.
        "enforce" => ShedMode::Enforce,
        /// What would be shed is counted, and passes.
        "shadow" => ShedMode::Shadow,
        /// Nothing is looked at.
        "off" => ShedMode::Off,
    }
}

words! {
    /// How much requests matter when some are shed.
    struct PriorityName(Priority) as "a priority" {
        /// Trials of integrators: shed first.
        "test" => Priority::Test,
        /// What asks for data.
        "read" => Priority::Read,
        /// What changes data.
        "write" => Priority::Write,
        /// What the business lives by: shed last, and by the fleet only at its whole capacity.
        "critical" => Priority::Critical,
    }
}
