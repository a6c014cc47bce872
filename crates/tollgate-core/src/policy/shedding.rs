//! What is shed when there is more to do than can be done.

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

/// The limit that counts every request in flight across the fleet.
pub const FLEET_POOL: &str = "shed.fleet";
/// The limit that counts those of them that are not critical.
pub const FLEET_NONCRITICAL: &str = "shed.fleet.noncritical";

/// How requests are shed, by the fleet and by each node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shedding {
    /// The switch over both.
    pub mode: ShedMode,
    /// By what all nodes have in flight together.
    pub fleet: Option<FleetShedding>,
    /// By the load of the node that serves the request.
    pub worker: Option<WorkerShedding>,
}

/// Whether a shedder sheds.
///
/// In the order in which they overrule each other: the switch over all shedders can calm each of
/// them, and rouse none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShedMode {
    /// What is to be shed is shed.
    #[default]
    Enforce,
    /// What would be shed is counted, and passes.
    Shadow,
    /// Nothing is looked at.
    Off,
}

/// A pool of requests in flight across all nodes, a part of it kept for critical ones: two
/// concurrency limits that everybody shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetShedding {
    /// Whether it sheds.
    pub mode: ShedMode,
    /// Index of the limit that every request is charged on, in [`Policy::limits`].
    pub pool: usize,
    /// Index of the limit that requests which are not critical are charged on as well.
    pub noncritical: usize,
}

/// What a node may carry. Whatever there is most of, measured by its bound, decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerShedding {
    /// Whether it sheds.
    pub mode: ShedMode,
    /// How many requests it may have in flight.
    pub in_flight: Option<InFlightBound>,
    /// How long requests may wait in it before they are served.
    pub queue_delay: Option<Millis>,
    /// How late its tasks may run.
    pub loop_delay: Option<Millis>,
}

/// How many requests a node may have in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlightBound {
    /// As many as somebody said.
    Fixed(NonZeroU32),
    /// As many as answers come back in time for.
    Adaptive(AdaptiveBound),
}

/// A bound that follows how the service answers, from `min` to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveBound {
    /// How it follows.
    pub algorithm: AdaptiveAlgorithm,
    /// Never less than this.
    pub min: NonZeroU32,
    /// Never more than this, at least `min`.
    pub max: NonZeroU32,
}

/// How a bound follows the service's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdaptiveAlgorithm {
    /// By how long answers take now beside how long they took: Gradient2 of Netflix's
    /// concurrency-limits.
    Gradient,
    /// One more with each answer in time, a tenth less with each that fails or takes longer than
    /// this: additive increase, multiplicative decrease, as TCP has it (Chiu and Jain, 1989).
    Aimd {
        /// The longest that an answer may take.
        timeout: Millis,
    },
}

impl FleetShedding {
    /// The two limits of a pool of `capacity` requests in flight, of which `reserved` are kept for
    /// critical ones: that of all requests, and that of those that are not critical. A node that
    /// dies gives its places back within a `lease`.
    ///
    /// # Errors
    /// [`LimitError`] unless something is left for others, and the numbers fit a concurrency limit.
    pub fn limits(
        capacity: u64,
        reserved: u64,
        lease: Millis,
    ) -> Result<[LimitBinding; 2], LimitError> {
        let others = capacity.saturating_sub(reserved);
        Ok([pool(FLEET_POOL, capacity, lease)?, pool(FLEET_NONCRITICAL, others, lease)?])
    }

    /// The limits that a request of `priority` has to find room in.
    fn charged(&self, priority: Priority) -> impl Iterator<Item = usize> {
        let noncritical = (priority != Priority::Critical).then_some(self.noncritical);
        [self.pool].into_iter().chain(noncritical)
    }
}

/// A limit for everybody together, of which clients are not told: no counter is theirs.
fn pool(name: &str, quota: u64, lease: Millis) -> Result<LimitBinding, LimitError> {
    let algorithm = Algorithm::Concurrency(Concurrency::new(quota, lease)?);
    let limit = Limit::new(name, algorithm)?.with_visibility(Visibility::Hidden);
    Ok(LimitBinding { limit: Arc::new(limit), per: Vec::new() })
}

impl Shedding {
    /// Whether the fleet sheds, and how, unless that is switched off.
    #[must_use]
    pub fn fleet(&self) -> Option<FleetShedding> {
        let fleet = self.fleet.as_ref()?;
        let mode = fleet.mode.max(self.mode);
        (mode != ShedMode::Off).then_some(FleetShedding { mode, ..*fleet })
    }

    /// Whether nodes shed by their own load, and how, unless that is switched off.
    #[must_use]
    pub fn worker(&self) -> Option<WorkerShedding> {
        let worker = self.worker.as_ref()?;
        let mode = worker.mode.max(self.mode);
        (mode != ShedMode::Off).then_some(WorkerShedding { mode, ..*worker })
    }
}

impl Policy {
    /// Sets how requests are shed; `None` if a pool names a limit that is not there, or one that
    /// not everybody shares.
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

    /// What a request of `priority` is charged in the pool of `fleet`, for as long as it runs.
    #[must_use]
    pub fn fleet_plan(&self, fleet: &FleetShedding, priority: Priority) -> Vec<PlannedCharge> {
        let planned = |index: usize| {
            let limit = Arc::clone(&self.limits.get(index)?.limit);
            Some(PlannedCharge::new(limit, Subject::default(), Cost::ONE))
        };
        fleet.charged(priority).filter_map(planned).collect()
    }

    /// How requests are shed.
    #[must_use]
    pub const fn shedding(&self) -> &Shedding {
        &self.shedding
    }
}

impl InFlightBound {
    /// The bound before any request was answered: what was said, or the least that may be.
    #[must_use]
    pub const fn at_start(&self) -> NonZeroU32 {
        match self {
            Self::Fixed(bound) => *bound,
            Self::Adaptive(bound) => bound.min,
        }
    }
}
