//! Load shedding when a node or the fleet of all nodes is overloaded.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::{LimitBinding, PlannedCharge, Policy, Priority};
use crate::algo::Concurrency;
use crate::cost::Cost;
use crate::key::Subject;
use crate::limit::{Algorithm, Limit, Visibility};
use crate::limit_error::LimitError;
use crate::time::Millis;

/// The name of the limit that counts every request in flight across the fleet.
pub const FLEET_POOL: &str = "shed.fleet";
/// The name of the limit that counts the noncritical requests in flight across the fleet.
pub const FLEET_NONCRITICAL: &str = "shed.fleet.noncritical";

/// The settings of load shedding, for the fleet of nodes and for each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shedding {
    /// The mode of both shedders together. This mode can weaken the mode of each shedder, and never
    /// strengthens it.
    pub mode: ShedMode,
    /// Shedding by the requests in flight on all nodes.
    pub fleet: Option<FleetShedding>,
    /// Shedding by the load of the node that serves the request.
    pub worker: Option<WorkerShedding>,
}

/// The mode of a shedder, which decides whether the shedder refuses requests.
///
/// The variants are ordered from the strictest to the weakest. [`Shedding::mode`] can replace the
/// mode of a shedder by a later variant, and never by an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShedMode {
    /// The shedder refuses requests.
    #[default]
    Enforce,
    /// The shedder counts the requests that it would refuse, and admits them.
    Shadow,
    /// The shedder is off and does not measure the load.
    Off,
}

/// A bound on the requests in flight on all nodes. Two concurrency limits, which all clients share,
/// implement the bound. A part of the bound is reserved for critical requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetShedding {
    /// Whether this shedder refuses requests.
    pub mode: ShedMode,
    /// The index, in [`Policy::limits`], of the limit on which every request is charged.
    pub pool: usize,
    /// The index, in [`Policy::limits`], of the limit on which noncritical requests are also
    /// charged.
    pub noncritical: usize,
}

/// The load that a node accepts. Each setting is a bound on one measured value. The value that is
/// highest in relation to its bound decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerShedding {
    /// Whether this shedder refuses requests.
    pub mode: ShedMode,
    /// The largest number of requests in flight on the node, or `None` for no bound.
    pub in_flight: Option<InFlightBound>,
    /// The longest time that requests may wait on the node before they are served, or `None` for no
    /// bound.
    pub queue_delay: Option<Millis>,
    /// The longest time that a ready task may wait until the node's runtime runs it, or `None` for
    /// no bound.
    pub loop_delay: Option<Millis>,
}

/// The bound on a node's requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlightBound {
    /// A fixed number of requests.
    Fixed(NonZeroU32),
    /// A number that adapts to the response times of the service.
    Adaptive(AdaptiveBound),
}

/// A bound that adapts to the responses of the service, from `min` to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveBound {
    /// The algorithm by which the bound adapts.
    pub algorithm: AdaptiveAlgorithm,
    /// The smallest value of the bound.
    pub min: NonZeroU32,
    /// The largest value of the bound, at least `min`.
    pub max: NonZeroU32,
}

/// The algorithm by which a bound adapts to the responses of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdaptiveAlgorithm {
    /// Lowers the bound while current response times are longer than earlier ones, and otherwise
    /// raises it slowly. This is the algorithm Gradient2 of Netflix's concurrency-limits.
    Gradient,
    /// Raises the bound by one for each response in time, and lowers it by a tenth for each
    /// response that fails or takes longer than the timeout. This is additive increase and
    /// multiplicative decrease, as in TCP (Chiu and Jain, 1989).
    Aimd {
        /// The longest time for a response. A response that takes longer lowers the bound.
        timeout: Millis,
    },
}

impl FleetShedding {
    /// Returns two limits for a pool of `capacity` requests in flight: the limit of all requests,
    /// and the limit of the noncritical requests. `reserved` permits of the pool are available to
    /// critical requests only. If a node dies, its permits expire within `lease`.
    ///
    /// # Errors
    /// [`LimitError`] if no permit is left for noncritical requests, or if a number is not valid
    /// for a concurrency limit.
    pub fn limits(
        capacity: u64,
        reserved: u64,
        lease: Millis,
    ) -> Result<[LimitBinding; 2], LimitError> {
        let others = capacity.saturating_sub(reserved);
        Ok([pool(FLEET_POOL, capacity, lease)?, pool(FLEET_NONCRITICAL, others, lease)?])
    }

    /// Returns the limits on which a request of `priority` is charged.
    fn charged(&self, priority: Priority) -> impl Iterator<Item = usize> {
        let noncritical = (priority != Priority::Critical).then_some(self.noncritical);
        [self.pool].into_iter().chain(noncritical)
    }
}

/// Creates a concurrency limit of `quota` permits that all subjects share. A permit expires after
/// `lease` unless it is renewed. The limit is hidden from clients, because its counter does not
/// describe a single client.
fn pool(name: &str, quota: u64, lease: Millis) -> Result<LimitBinding, LimitError> {
    let algorithm = Algorithm::Concurrency(Concurrency::new(quota, lease)?);
    let limit = Limit::new(name, algorithm)?.with_visibility(Visibility::Hidden);
    Ok(LimitBinding { limit: Arc::new(limit), per: Vec::new() })
}

impl Shedding {
    /// Returns the settings of shedding by the requests on all nodes, with the effective mode.
    /// Returns `None` if this shedder is off.
    #[must_use]
    pub fn fleet(&self) -> Option<FleetShedding> {
        let fleet = self.fleet.as_ref()?;
        let mode = fleet.mode.max(self.mode);
        (mode != ShedMode::Off).then_some(FleetShedding { mode, ..*fleet })
    }

    /// Returns the settings of shedding by the load of this node, with the effective mode. Returns
    /// `None` if this shedder is off.
    #[must_use]
    pub fn worker(&self) -> Option<WorkerShedding> {
        let worker = self.worker.as_ref()?;
        let mode = worker.mode.max(self.mode);
        (mode != ShedMode::Off).then_some(WorkerShedding { mode, ..*worker })
    }
}

impl Policy {
    /// Sets the settings of load shedding. Returns `None` if the fleet's pool refers to a missing
    /// limit, or to a limit that not all subjects share.
    #[must_use]
    pub fn with_shedding(mut self, shedding: Shedding) -> Option<Self> {
        let is_shared = |index: usize| self.limits.get(index).is_some_and(|one| one.per.is_empty());
        let pools = shedding.fleet.map(|fleet| [fleet.pool, fleet.noncritical]);
        if !pools.into_iter().flatten().all(is_shared) {
            return None;
        }
        self.shedding = shedding;
        Some(self)
    }

    /// Returns the charges of a request of `priority` on the concurrency limits of `fleet`. The
    /// request holds the permits until it ends.
    #[must_use]
    pub fn fleet_plan(&self, fleet: &FleetShedding, priority: Priority) -> Vec<PlannedCharge> {
        let planned = |index: usize| {
            let limit = Arc::clone(&self.limits.get(index)?.limit);
            Some(PlannedCharge::new(limit, Subject::default(), Cost::ONE))
        };
        fleet.charged(priority).filter_map(planned).collect()
    }

    /// Returns the settings of load shedding.
    #[must_use]
    pub const fn shedding(&self) -> &Shedding {
        &self.shedding
    }
}

impl InFlightBound {
    /// Returns the bound that applies before the first response: the fixed number, or `min` of an
    /// adaptive bound.
    #[must_use]
    pub const fn at_start(&self) -> NonZeroU32 {
        match self {
            Self::Fixed(bound) => *bound,
            Self::Adaptive(bound) => bound.min,
        }
    }
}
