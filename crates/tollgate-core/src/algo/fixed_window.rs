//! Fixed window: counts from zero in every window.
//!
//! Source: the limiter that GitHub described in "How we scaled the GitHub API with a sharded,
//! replicated rate limiter in Redis" (2021). That article recommends storing the reset time
//! together with the count. Every response within a window then reports the same reset time.

use super::{CellStep, PlainStep, Schedule, StepTime};
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::limit_error::{LimitError, check_span, check_units};
use crate::reading::{Admission, Reading, StoredState};
use crate::time::{MAX_EXACT, Millis, Timestamp};

/// The rule that defines when windows start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anchor {
    /// A window starts at the first charge after the last window ended. Each subject has its own
    /// windows.
    #[default]
    FirstRequest,
    /// Windows start at multiples of their length since the Unix epoch. All subjects have the same
    /// windows.
    Calendar,
    /// A schedule defines the windows, which can have different lengths, such as months. All
    /// subjects have the same windows.
    Scheduled(Schedule),
}

/// A limit of at most `quota` units in each window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    quota: u64,
    window: Millis,
    anchor: Anchor,
}

/// The stored state: one open window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The used units of the window.
    pub used: u64,
    /// The end of the window, exclusive.
    pub resets_at: Timestamp,
}

impl FixedWindow {
    /// Creates a limit of `quota` units per `window`. With [`Anchor::Scheduled`], the schedule
    /// defines the windows, and the parameter `window` is ignored.
    ///
    /// # Errors
    /// [`LimitError`] if `quota` or `window` is zero or above its largest allowed value.
    pub fn new(quota: u64, window: Millis, anchor: Anchor) -> Result<Self, LimitError> {
        let window = match anchor {
            Anchor::FirstRequest | Anchor::Calendar => window,
            Anchor::Scheduled(schedule) => schedule.longest(),
        };
        check_units("quota", quota)?;
        check_span("window", window)?;
        Ok(Self { quota, window, anchor })
    }

    /// Creates a limit of `quota` units per window of `schedule`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn scheduled(quota: u64, schedule: Schedule) -> Result<Self, LimitError> {
        Self::new(quota, schedule.longest(), Anchor::Scheduled(schedule))
    }

    /// Returns the units per window.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// Returns the length of the window. With [`Anchor::Scheduled`], this is the length of the
    /// longest window.
    #[must_use]
    pub const fn window(&self) -> Millis {
        self.window
    }

    /// Returns a duration that no window is shorter than: the length of the window, or for a
    /// schedule half of the longest window.
    #[must_use]
    pub const fn shortest_window(&self) -> Millis {
        match self.anchor {
            Anchor::FirstRequest | Anchor::Calendar => self.window,
            Anchor::Scheduled(_) => Millis::new(self.window.get().div_ceil(2)),
        }
    }

    /// Returns the window length that is reported to clients. For a schedule, this is
    /// [`WindowSchedule::nominal`](super::WindowSchedule::nominal), the usual length of its
    /// windows.
    #[must_use]
    pub fn nominal_window(&self) -> Millis {
        match self.anchor {
            Anchor::FirstRequest | Anchor::Calendar => self.window,
            Anchor::Scheduled(schedule) => schedule.nominal(),
        }
    }

    /// Returns a time in the window that ends at `resets_at`. A charge at the returned time opens
    /// this window. The returned time has no meaning if no window of this limit ends at
    /// `resets_at`.
    #[must_use]
    pub fn opening_of(&self, resets_at: Timestamp) -> Timestamp {
        match self.anchor {
            Anchor::FirstRequest | Anchor::Calendar => before(resets_at, self.window),
            Anchor::Scheduled(schedule) => {
                schedule.window_at(before(resets_at, Millis::new(1))).start
            }
        }
    }

    /// Returns the rule that defines when windows start.
    #[must_use]
    pub const fn anchor(&self) -> Anchor {
        self.anchor
    }

    /// Returns an upper bound of the units that the limit admits for one subject in a period of
    /// length `ran`. The bound holds if clocks differ by at most `skew`, or if one clock is
    /// adjusted by at most `skew`. It is one quota for the window that is open at the start of the
    /// period, plus one quota for each window that can begin in a period of length `ran + skew`. If
    /// the clock of the store is set back several times, each further time can admit one more quota.
    #[must_use]
    pub const fn max_admitted_units(&self, ran: Millis, skew: Millis) -> u64 {
        let windows = ran.get().saturating_add(skew.get()).div_ceil(self.shortest_window().get());
        windows.saturating_add(1).saturating_mul(self.quota)
    }

    /// Returns the open window in `state`, or, if no window is open, the empty window that a charge
    /// at `at` would open. Also returns whether `state` was missing, present or discarded.
    #[inline(always)]
    fn current(&self, state: Option<&State>, at: StepTime) -> (State, StoredState) {
        let found = match state {
            Some(state) if at.now >= state.resets_at => StoredState::Missing,
            Some(state) if at.is_from_future(self.opened_at(state)) => StoredState::Discarded,
            Some(state) => return (*state, StoredState::Present),
            None => StoredState::Missing,
        };
        let resets_at = match self.anchor {
            Anchor::FirstRequest => at.now.after(self.window),
            Anchor::Calendar => {
                let window = self.window.get();
                Timestamp::from_millis((at.now.as_millis() / window + 1) * window)
            }
            Anchor::Scheduled(schedule) => schedule.window_at(at.now).end,
        };
        (State { used: 0, resets_at }, found)
    }

    /// Returns whether the units that remain in `window` are enough for `cost`.
    #[inline(always)]
    fn has(&self, window: &State, cost: Cost) -> bool {
        cost.needed() <= self.quota.saturating_sub(window.used)
    }

    /// Returns the reading for a charge of `cost` on the open window `window`. `found` becomes the
    /// reading's [`found`](Reading::found).
    #[inline(always)]
    fn reading(&self, window: &State, found: StoredState, cost: Cost) -> Reading {
        let admission = if self.has(window, cost) {
            Admission::Now
        } else if cost.needed() <= self.quota {
            Admission::At(window.resets_at)
        } else {
            Admission::Never
        };
        Reading {
            admission,
            fits_again: admission,
            used: window.used,
            full_reset_at: window.resets_at,
            position: ChargePosition(window.resets_at.as_millis()),
            refunded: 0,
            added: 0,
            reserved: 0,
            found,
        }
    }

    /// Returns the earliest time at which the window of `state` can have opened.
    #[inline(always)]
    fn opened_at(&self, state: &State) -> Timestamp {
        before(state.resets_at, self.window)
    }
}

/// Returns `window` with the units of `cost` added to its used units.
#[inline(always)]
fn with(window: &State, cost: Cost) -> State {
    State { used: window.used.saturating_add(cost.get()).min(MAX_EXACT), ..*window }
}

#[inline(always)]
const fn before(time: Timestamp, by: Millis) -> Timestamp {
    Timestamp::from_millis(time.as_millis().saturating_sub(by.get()))
}

impl CellStep for FixedWindow {
    type State = State;

    #[inline(always)]
    fn read(&self, state: Option<&State>, cost: Cost, at: StepTime) -> Reading {
        let (window, found) = self.current(state, at);
        self.reading(&window, found, cost)
    }

    #[inline(always)]
    fn charge(&self, state: Option<State>, cost: Cost, _id: ChargeId, at: StepTime) -> State {
        let (window, _) = self.current(state.as_ref(), at);
        with(&window, cost)
    }

    fn refund(
        &self,
        state: &mut State,
        cost: Cost,
        position: ChargePosition,
        _id: ChargeId,
        at: StepTime,
    ) -> u64 {
        let (window, found) = self.current(Some(state), at);
        if found != StoredState::Present || window.resets_at.as_millis() != position.0 {
            return 0;
        }
        let refunded = cost.get().min(window.used);
        state.used -= refunded;
        refunded
    }

    /// Merges two windows of one limit and subject. If the windows overlap, the result ends when
    /// the window that opened first ends, because clients have already received this reset time. If
    /// the windows do not overlap, the result is the later window. Two windows of a schedule that
    /// end at different times never overlap: their ends differ by more than half of the longest
    /// window.
    fn join(&self, one: State, other: State) -> State {
        let (first, last) =
            if one.resets_at <= other.resets_at { (one, other) } else { (other, one) };
        if before(last.resets_at, self.shortest_window()) >= first.resets_at {
            return last;
        }
        State { used: first.used.max(last.used), ..first }
    }

    #[inline(always)]
    fn expires_at(&self, state: &State) -> Timestamp {
        state.resets_at
    }

    fn refundable_until(&self, position: ChargePosition) -> Timestamp {
        Timestamp::from_millis(position.0)
    }
}

impl PlainStep for FixedWindow {
    #[inline(always)]
    fn charge_if_fits(
        &self,
        state: &State,
        cost: Cost,
        at: StepTime,
    ) -> Result<(State, Reading), Reading> {
        let (current, found) = self.current(Some(state), at);
        if !self.has(&current, cost) {
            return Err(self.reading(&current, found, cost));
        }
        let next = with(&current, cost);
        Ok((next, self.reading(&next, found, cost)))
    }
}
