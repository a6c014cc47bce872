//! The load of one node, and the choice of the requests that the node sheds.

use std::num::NonZeroU32;

use parking_lot::Mutex;
use tollgate_core::policy::Priority;
use tollgate_core::policy::shedding::{InFlightBound, ShedMode, Shedding, WorkerShedding};
use tollgate_core::{Millis, Timestamp};

use super::adaptive::{Adaptive, Sample};
use super::counts::ShedCounts;
use super::decision::{ShedCause, ShedDecision};
use super::delay::PersistentDelay;
use super::level::{OVERLOAD, ShedLevel};

/// The multiple of the bound on requests in flight at which a worker begins to shed all requests
/// except critical requests, at any [`ShedLevel`]. This limit keeps requests from piling up while
/// the level still rises.
pub const HARD_LIMIT_FACTOR: u32 = 2;

/// The load of one node, and the choice of the requests that the node sheds.
///
/// The [`ShedLevel`] sets the share of each priority that is shed. Once the requests in flight
/// reach [`HARD_LIMIT_FACTOR`] times their bound, all requests except critical requests are shed at
/// once. A request that is shed in shadow mode is admitted and not counted as in flight, so other
/// requests are shed as if the mode were enforced.
#[derive(Debug, Default)]
pub struct Worker {
    state: Mutex<State>,
    counts: ShedCounts,
}

#[derive(Debug, Default)]
struct State {
    /// The settings of load shedding on this node; `None` if the policy does not shed load.
    settings: Option<WorkerShedding>,
    in_flight: u32,
    adaptive: Option<Adaptive>,
    queue_delay: PersistentDelay,
    loop_delay: PersistentDelay,
    level: ShedLevel,
    /// The kind of load that was highest when the level last rose.
    cause: Option<ShedCause>,
}

/// The status of load shedding on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Requests in flight that hold an [`InFlightSlot`](super::InFlightSlot).
    pub in_flight: u32,
    /// The bound on requests in flight, if there is one.
    pub bound: Option<NonZeroU32>,
    /// The shed level, from 0 to [`MAX_LEVEL`](super::MAX_LEVEL).
    pub level: u32,
}

impl Worker {
    /// Creates the load of a node without requests, with the settings `shedding`.
    #[must_use]
    pub fn new(shedding: &Shedding) -> Self {
        let worker = Self::default();
        worker.follow(shedding);
        worker
    }

    /// Applies the settings `shedding` from now on. Requests in flight continue. The level stays
    /// unless `shedding` switches load shedding off. The adaptive bound stays unless `shedding`
    /// removes or changes the bound.
    pub fn follow(&self, shedding: &Shedding) {
        let mut state = self.state.lock();
        let settings = shedding.worker();
        let adaptive = match settings.and_then(|settings| settings.in_flight) {
            Some(InFlightBound::Adaptive(bound)) => Some(bound),
            Some(InFlightBound::Fixed(_)) | None => None,
        };
        if state.adaptive.as_ref().map(Adaptive::bound) != adaptive.as_ref() {
            state.adaptive = adaptive.map(Adaptive::new);
        }
        if settings.is_none() {
            (state.level, state.cause) = (ShedLevel::default(), None);
        }
        state.settings = settings;
    }

    /// Admits a request or sheds the request. Applies the mode `override_mode` or the mode of the
    /// settings, whichever sheds less. Returns the number of requests in flight, including this
    /// request, or `None` if this request is not counted. A counted request [leaves](Self::leave)
    /// when the request ends.
    ///
    /// # Errors
    /// [`ShedDecision`] if the load is too high for the priority of the request.
    pub(super) fn admit(
        &self,
        now: Timestamp,
        priority: Priority,
        override_mode: ShedMode,
    ) -> Result<Option<u32>, ShedDecision> {
        let mut state = self.state.lock();
        let Some(settings) = state.settings else { return Ok(None) };
        let mode = settings.mode.max(override_mode);
        state.update(now, &settings);
        if let Some(shed) = state.shed(&settings, priority) {
            self.counts.count(&shed, mode);
            return match mode {
                ShedMode::Enforce => Err(shed),
                ShedMode::Shadow | ShedMode::Off => Ok(None),
            };
        }
        state.in_flight = state.in_flight.saturating_add(1);
        Ok(Some(state.in_flight))
    }

    /// Measures the load at `now` and updates the level. Call this method while no requests arrive;
    /// otherwise each request updates the level.
    pub fn update(&self, now: Timestamp) {
        let mut state = self.state.lock();
        if let Some(settings) = state.settings {
            state.update(now, &settings);
        }
    }

    /// Records that a task ran `micros` microseconds late at `now`.
    pub fn observe_loop_delay(&self, now: Timestamp, micros: u64) {
        self.state.lock().loop_delay.observe(now, micros);
    }

    /// Records that a request waited `micros` microseconds before the service began the request at
    /// `now`.
    pub fn observe_queue_delay(&self, now: Timestamp, micros: u64) {
        self.state.lock().queue_delay.observe(now, micros);
    }

    /// Records a response of the service at `now`, for the adaptive bound.
    pub fn observe(&self, now: Timestamp, sample: Sample) {
        if let Some(adaptive) = &mut self.state.lock().adaptive {
            adaptive.observe(now, sample);
        }
    }

    /// Ends a request that [`admit`](Self::admit) counted.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
    }

    /// Returns whether the policy sheds load on this node, in any mode except `off`.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.state.lock().settings.is_some()
    }

    /// Returns the requests in flight, their bound and the level of load shedding.
    #[must_use]
    pub fn status(&self) -> WorkerStatus {
        let state = self.state.lock();
        let bound = state.settings.and_then(|settings| state.bound(&settings));
        WorkerStatus { in_flight: state.in_flight, bound, level: state.level.get() }
    }

    /// Returns the counts of the requests that this node shed, because of its own load or because
    /// the fleet had no free slot.
    #[must_use]
    pub const fn counts(&self) -> &ShedCounts {
        &self.counts
    }
}

impl State {
    /// Measures the load at `now` and updates the level.
    fn update(&mut self, now: Timestamp, settings: &WorkerShedding) {
        let (load, cause) = self.load(now, settings);
        self.level.follow(now, load);
        if load > OVERLOAD {
            self.cause = Some(cause);
        }
    }

    /// Returns the load that is highest relative to its bound, in thousandths of the bound, and the
    /// cause that a refusal reports for this load.
    fn load(&mut self, now: Timestamp, settings: &WorkerShedding) -> (u32, ShedCause) {
        let in_flight = self.bound(settings).map(|bound| {
            (thousandths(u64::from(self.in_flight), u64::from(bound.get())), ShedCause::InFlight)
        });
        let queue = settings.queue_delay.map(|most| {
            (thousandths(self.queue_delay.micros(now), micros(most)), ShedCause::QueueDelay)
        });
        let late = settings.loop_delay.map(|most| {
            (thousandths(self.loop_delay.micros(now), micros(most)), ShedCause::LoopDelay)
        });
        let most = [in_flight, queue, late].into_iter().flatten().max_by_key(|(load, _)| *load);
        most.unwrap_or((0, ShedCause::InFlight))
    }

    /// Decides whether a request of `priority` is shed. Returns `None` if the request is not shed.
    fn shed(&mut self, settings: &WorkerShedding, priority: Priority) -> Option<ShedDecision> {
        let is_shed = self.level.sheds(priority);
        let bound = self.bound(settings).filter(|_| priority != Priority::Critical);
        let is_full = bound
            .is_some_and(|bound| self.in_flight >= bound.get().saturating_mul(HARD_LIMIT_FACTOR));
        let cause = match self.cause {
            _ if is_full => ShedCause::InFlight,
            cause => cause.unwrap_or(ShedCause::InFlight),
        };
        let retry_after = self.level.passes_after(priority).max(SOON);
        (is_shed || is_full).then_some(ShedDecision { priority, cause, retry_after })
    }

    fn bound(&self, settings: &WorkerShedding) -> Option<NonZeroU32> {
        match (&self.adaptive, settings.in_flight?) {
            (Some(adaptive), InFlightBound::Adaptive(_)) => Some(adaptive.get()),
            (_, bound) => Some(bound.at_start()),
        }
    }
}

/// The shortest `Retry-After` of a request that was shed.
const SOON: Millis = Millis::from_secs(1);

const fn micros(time: Millis) -> u64 {
    time.get().saturating_mul(1_000)
}

/// Returns `what` in thousandths of `most`, which is not 0.
fn thousandths(what: u64, most: u64) -> u32 {
    u32::try_from(what.saturating_mul(1_000) / most.max(1)).unwrap_or(u32::MAX)
}
