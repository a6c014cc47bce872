//! One node: what it has to do, and what it sheds by that.

use std::num::NonZeroU32;
use std::sync::Arc;

use parking_lot::Mutex;
use tollgate_core::policy::Priority;
use tollgate_core::policy::shedding::{InFlightBound, ShedMode, Shedding, WorkerShedding};
use tollgate_core::{Millis, Timestamp};

use super::adaptive::{Adaptive, Sample};
use super::counts::ShedCounts;
use super::decision::{ShedCause, ShedDecision};
use super::delay::PersistentDelay;
use super::level::{OVERLOAD, ShedLevel};
use super::slot::InFlightSlot;

/// At so many times its bound on requests in flight a worker takes nothing on that is not critical,
/// however high its [`ShedLevel`] is: what comes while the level still rises does not pile up.
pub const HARD_LIMIT_FACTOR: u32 = 2;

/// What one node has to do, and what it sheds by that.
///
/// The [`ShedLevel`] says how much of which priority; above [`HARD_LIMIT_FACTOR`] times the bound on requests in
/// flight, which holds at once, everything but critical requests is shed. What is shed in shadow
/// mode passes and is not counted as in flight, so that the rest of it goes as it would go in
/// earnest.
#[derive(Debug, Default)]
pub struct Worker {
    state: Mutex<State>,
    counts: ShedCounts,
}

#[derive(Debug, Default)]
struct State {
    /// None where nothing is shed.
    settings: Option<WorkerShedding>,
    in_flight: u32,
    adaptive: Option<Adaptive>,
    queue_delay: PersistentDelay,
    loop_delay: PersistentDelay,
    level: ShedLevel,
    /// What there was most of when the level last rose.
    cause: Option<ShedCause>,
}

/// How a worker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Requests in flight that hold a [`InFlightSlot`].
    pub in_flight: u32,
    /// How many there may be, if that is bounded.
    pub bound: Option<NonZeroU32>,
    /// How much it sheds, from nothing to [`MAX_LEVEL`](super::MAX_LEVEL).
    pub level: u32,
}

impl Worker {
    /// A worker that sheds as `shedding` says.
    #[must_use]
    pub fn new(shedding: &Shedding) -> Self {
        let worker = Self::default();
        worker.follow(shedding);
        worker
    }

    /// Sheds as `shedding` says from now on. Requests in flight go on; the level and the adaptive
    /// bound stay, unless that is switched off or bounded otherwise.
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

    /// Takes a request on, or sheds it. No permit where nothing is to be shed, and for what is shed
    /// in shadow mode.
    ///
    /// # Errors
    /// [`ShedDecision`]: there is too much to do for its priority.
    pub fn enter(
        self: &Arc<Self>,
        now: Timestamp,
        priority: Priority,
    ) -> Result<Option<InFlightSlot>, ShedDecision> {
        self.enter_with_mode(now, priority, ShedMode::Enforce)
    }

    /// As [`enter`](Self::enter), as calm as `override_mode` says, or calmer.
    pub(crate) fn enter_with_mode(
        self: &Arc<Self>,
        now: Timestamp,
        priority: Priority,
        override_mode: ShedMode,
    ) -> Result<Option<InFlightSlot>, ShedDecision> {
        let mut state = self.state.lock();
        let Some(settings) = state.settings else { return Ok(None) };
        let mode = settings.mode.max(override_mode);
        state.look(now, &settings);
        if let Some(shed) = state.shed(&settings, priority) {
            self.counts.count(&shed, mode);
            return match mode {
                ShedMode::Enforce => Err(shed),
                ShedMode::Shadow | ShedMode::Off => Ok(None),
            };
        }
        state.in_flight = state.in_flight.saturating_add(1);
        Ok(Some(InFlightSlot::new(Arc::clone(self), state.in_flight)))
    }

    /// Looks at the load `now`, where no request comes that would.
    pub fn look(&self, now: Timestamp) {
        let mut state = self.state.lock();
        if let Some(settings) = state.settings {
            state.look(now, &settings);
        }
    }

    /// A task ran so many microseconds late `now`.
    pub fn observe_loop_delay(&self, now: Timestamp, micros: u64) {
        self.state.lock().loop_delay.observe(now, micros);
    }

    /// A request waited so many microseconds until it was served `now`.
    pub fn observe_queue_delay(&self, now: Timestamp, micros: u64) {
        self.state.lock().queue_delay.observe(now, micros);
    }

    /// The service answered `now`.
    pub fn observe(&self, now: Timestamp, sample: Sample) {
        if let Some(adaptive) = &mut self.state.lock().adaptive {
            adaptive.observe(now, sample);
        }
    }

    pub(super) fn leave(&self) {
        let mut state = self.state.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
    }

    /// Whether anything is shed here, or would be.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.state.lock().settings.is_some()
    }

    /// How it stands.
    #[must_use]
    pub fn status(&self) -> WorkerStatus {
        let state = self.state.lock();
        let bound = state.settings.and_then(|settings| state.bound(&settings));
        WorkerStatus { in_flight: state.in_flight, bound, level: state.level.get() }
    }

    /// What was shed, by this worker and for want of a place in the fleet.
    #[must_use]
    pub const fn counts(&self) -> &ShedCounts {
        &self.counts
    }
}

impl State {
    /// Lets the level follow the load.
    fn look(&mut self, now: Timestamp, settings: &WorkerShedding) {
        let (load, cause) = self.load(now, settings);
        self.level.follow(now, load);
        if load > OVERLOAD {
            self.cause = Some(cause);
        }
    }

    /// What there is most of, in thousandths of what is bearable.
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

    /// Why a request of `priority` is shed, if it is.
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

/// The least that a request which was shed is asked to wait.
const SOON: Millis = Millis::from_secs(1);

const fn micros(time: Millis) -> u64 {
    time.get().saturating_mul(1_000)
}

/// How many thousandths of `most`, which is not 0, `what` is.
fn thousandths(what: u64, most: u64) -> u32 {
    u32::try_from(what.saturating_mul(1_000) / most.max(1)).unwrap_or(u32::MAX)
}
