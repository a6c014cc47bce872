//! The key `shed`: load shedding.

use tollgate_core::policy::Priority;
use tollgate_core::policy::shedding::ShedMode;

use crate::decode::{Duration, Integer, Percent, choices, keys};

keys! {
    /// Load shedding: refuses requests with 503 under overload, before any limit is charged, lowest
    /// priority first.
    struct Shed as "shedding" {
        /// The mode of all shedders together. It can make each of them less strict, never stricter.
        /// By default `enforce`.
        mode: ShedModeName,
        /// Shedding by the requests that all nodes have in flight together.
        fleet: Fleet,
        /// Shedding by the load of the node that serves the request.
        worker: Worker,
    }
}

keys! {
    /// A pool of requests in flight across all nodes. A share of it is kept for critical requests.
    struct Fleet as "a fleet", requires "capacity" {
        /// The most requests in flight on all nodes together, 2 to 10,000.
        capacity: Integer,
        /// The share of the capacity that only critical requests can use. By default `20%`.
        reserve_critical: Percent,
        /// How long a permit is valid if its node does not renew it. A node renews the permits of
        /// running requests. By default `60s`.
        permit_ttl: Duration,
        /// Whether it sheds. By default `enforce`.
        mode: ShedModeName,
    }
}

keys! {
    /// The bounds of a node, at least one of these. The load that is highest in relation to its
    /// bound decides.
    struct Worker as "a worker" {
        /// The most requests in flight on the node.
        in_flight: Integer,
        /// The most requests in flight on the node, adapted to how the service responds.
        adaptive: Adaptive,
        /// The longest time that requests may wait on the node before they are forwarded, such as
        /// `50ms`.
        queue_delay: Duration,
        /// The longest time that a ready task may wait until the node runs it, such as `50ms`.
        loop_delay: Duration,
        /// Whether it sheds. By default `enforce`.
        mode: ShedModeName,
    }
}

keys! {
    /// A bound that adapts to how the service responds.
    struct Adaptive as "an adaptive bound", requires "algorithm", "min", "max" {
        /// The algorithm that adapts the bound.
        algorithm: AdaptiveName,
        /// The smallest bound, which is also the initial one.
        min: Integer,
        /// The largest bound.
        max: Integer,
        /// For `aimd`: the longest time until the head of a response. By default `5s`.
        timeout: Duration,
    }
}

/// The algorithm of an adaptive bound, without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdaptiveKind {
    Gradient,
    Aimd,
}

choices! {
    /// The algorithm of an adaptive bound.
    struct AdaptiveName(AdaptiveKind) as "an adaptive algorithm" {
        /// Compares current response times with earlier ones, like Gradient2 of Netflix's
        /// concurrency-limits.
        "gradient" => AdaptiveKind::Gradient,
        /// Adds one for each response in time, and subtracts a tenth for each response that fails
        /// or takes too long.
        "aimd" => AdaptiveKind::Aimd,
    }
}

choices! {
    /// Whether a shedder refuses requests.
    struct ShedModeName(ShedMode) as "a mode" {
        /// Refuses requests under overload, the lowest priority first.
        "enforce" => ShedMode::Enforce,
        /// Counts the requests that it would refuse, and admits them.
        "shadow" => ShedMode::Shadow,
        /// Neither measures the load nor refuses requests.
        "off" => ShedMode::Off,
    }
}

choices! {
    /// The priority of requests for load shedding.
    struct PriorityName(Priority) as "a priority" {
        /// Test traffic, such as trials of integrators: shed first.
        "test" => Priority::Test,
        /// Requests that read data.
        "read" => Priority::Read,
        /// Requests that change data.
        "write" => Priority::Write,
        /// Requests that the business depends on: shed last, and by the fleet's pool only when its
        /// whole capacity is in use.
        "critical" => Priority::Critical,
    }
}
