//! Two-bucket estimate of a sliding window: the state is two counts and a number, whatever the
//! quota. Time is divided into buckets as long as the window, which start at multiples of this
//! length since the Unix epoch. The state counts the units of the current bucket and of the one
//! before.
//!
//! Source: Cloudflare, "How we built rate limiting capable of scaling to millions of domains"
//! (2017): the count of the previous bucket is weighted by the fraction of that bucket that the
//! sliding window still covers. This implementation uses integers, `previous × (window − elapsed) +
//! current × window`, and never divides.

use super::{CellStep, StepTime};
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::limit_error::{LimitError, check_range, check_span, check_units};
use crate::reading::{Admission, Reading, StoredState};
use crate::time::{MAX_EXACT, Millis, Timestamp};

/// A limit of about `quota` units in any interval of length `window`, computed from the units in
/// two buckets of time.
///
/// Each decision weights both buckets by the time of its own clock. If that clock lags behind the
/// start of the current bucket, both buckets count in full. The used units are then at most twice
/// the largest quota, and no units remain until the clock has caught up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoBucket {
    quota: u64,
    window: Millis,
}

/// The stored state: the units in two neighbouring buckets of time. Each bucket is as long as the
/// window and starts at a multiple of this length since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The number of the current bucket: its start divided by the window.
    pub bucket: u64,
    /// Units in the bucket before the current one.
    pub previous: u64,
    /// Units in the current bucket.
    pub current: u64,
}

impl TwoBucket {
    /// Creates a limit of about `quota` units per sliding `window`.
    ///
    /// # Errors
    /// [`LimitError`] if a number is zero or above its largest allowed value, or if `2 × quota ×
    /// window` in milliseconds exceeds 2^53 − 1.
    pub fn new(quota: u64, window: Millis) -> Result<Self, LimitError> {
        check_units("quota", quota)?;
        check_span("window", window)?;
        let because = "because 2 × quota × window in milliseconds must be below 2^53";
        check_range("quota", quota, largest_quota(window), because)?;
        Ok(Self { quota, window })
    }

    /// Returns the units per window.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// Returns the length of the window.
    #[must_use]
    pub const fn window(&self) -> Millis {
        self.window
    }

    /// Returns the state with the buckets of the time of `at`, the milliseconds since the current
    /// bucket began, and whether `state` was missing, present or discarded.
    fn current(&self, state: Option<&State>, at: StepTime) -> (State, u64, StoredState) {
        let window = self.window.get();
        let now = at.now.as_millis();
        let bucket = now / window;
        let fresh = State { bucket, previous: 0, current: 0 };
        let Some(state) = state else { return (fresh, now % window, StoredState::Missing) };
        let starts = state.bucket.saturating_mul(window);
        if starts > MAX_EXACT || at.is_from_future(Timestamp::from_millis(starts)) {
            return (fresh, now % window, StoredState::Discarded);
        }
        // A charge with a larger quota can have counted more than this quota. No quota exceeds the
        // largest one, with which the products are exact.
        let most = largest_quota(self.window);
        let state = State {
            previous: state.previous.min(most),
            current: state.current.min(most),
            ..*state
        };
        if state.bucket >= bucket {
            return (state, now.saturating_sub(starts), StoredState::Present);
        }
        if state.bucket + 1 == bucket {
            let rolled = State { bucket, previous: state.current, current: 0 };
            let found = if state.current > 0 { StoredState::Present } else { StoredState::Missing };
            return (rolled, now % window, found);
        }
        (fresh, now % window, StoredState::Missing)
    }

    /// Returns the first time at which `needed` units fit, or [`Admission::Never`] if they exceed
    /// the quota. The caller has checked that they do not fit now.
    fn fits_at(&self, state: &State, needed: u64) -> Admission {
        if needed > self.quota {
            return Admission::Never;
        }
        let window = self.window.get();
        let free = self.quota - needed;
        // The bucket in which `needed` fits, the units that lose weight during that bucket, and the
        // units that count in full.
        let (bucket, fading, staying) = if state.current <= free {
            (state.bucket, state.previous, state.current)
        } else {
            (state.bucket + 1, state.current, 0)
        };
        let room = (free - staying) * window;
        let elapsed = room.checked_div(fading).map_or(0, |left| window - left.min(window));
        Admission::At(Timestamp::from_millis(bucket * window + elapsed))
    }
}

/// Returns the largest quota of a limit with the window `window`, for which the weights of two full
/// buckets together stay below 2^53.
const fn largest_quota(window: Millis) -> u64 {
    MAX_EXACT / 2 / window.get()
}

impl CellStep for TwoBucket {
    type State = State;

    fn read(&self, state: Option<&State>, cost: Cost, at: StepTime) -> Reading {
        let (state, elapsed, found) = self.current(state, at);
        let window = self.window.get();
        let weight = state.previous * (window - elapsed) + state.current * window;
        let free = (self.quota * window).saturating_sub(weight);
        let admission = if cost.needed().saturating_mul(window) <= free {
            Admission::Now
        } else {
            self.fits_at(&state, cost.needed())
        };
        let full_reset_at = match (state.previous, state.current) {
            (0, 0) => at.now,
            (_, 0) => Timestamp::from_millis((state.bucket + 1) * window),
            _ => Timestamp::from_millis((state.bucket + 2) * window),
        };
        let position = ChargePosition(state.bucket);
        Reading {
            admission,
            fits_again: admission,
            used: weight.div_ceil(window),
            full_reset_at,
            position,
            refunded: 0,
            added: 0,
            reserved: 0,
            found,
        }
    }

    fn charge(&self, state: Option<State>, cost: Cost, _id: ChargeId, at: StepTime) -> State {
        let (state, _, _) = self.current(state.as_ref(), at);
        let most = largest_quota(self.window);
        State { current: state.current.saturating_add(cost.get()).min(most), ..state }
    }

    /// Fills the current bucket at most to the quota. A client that keeps retrying stays refused. A
    /// charge with a larger quota can have counted more units, which stay counted.
    fn charge_refused(
        &self,
        state: Option<State>,
        cost: Cost,
        _id: ChargeId,
        at: StepTime,
    ) -> State {
        let (state, _, _) = self.current(state.as_ref(), at);
        let filled = state.current.saturating_add(cost.get()).min(self.quota);
        State { current: state.current.max(filled), ..state }
    }

    fn refund(
        &self,
        state: &mut State,
        cost: Cost,
        position: ChargePosition,
        _id: ChargeId,
        at: StepTime,
    ) -> u64 {
        let (now, _, _) = self.current(Some(state), at);
        let still_counts = now.bucket.saturating_sub(position.0) < 2;
        let bucket = if still_counts && position.0 == state.bucket {
            &mut state.current
        } else if still_counts && position.0.checked_add(1) == Some(state.bucket) {
            &mut state.previous
        } else {
            return 0;
        };
        let refunded = cost.get().min(*bucket);
        *bucket -= refunded;
        refunded
    }

    fn join(&self, one: State, other: State) -> State {
        let bucket = one.bucket.max(other.bucket);
        let used_in = |state: &State, number: Option<u64>| match number {
            Some(number) if number == state.bucket => state.current,
            Some(number) if number.checked_add(1) == Some(state.bucket) => state.previous,
            _ => 0,
        };
        let most = |number| used_in(&one, number).max(used_in(&other, number));
        State { bucket, previous: most(bucket.checked_sub(1)), current: most(Some(bucket)) }
    }

    fn expires_at(&self, state: &State) -> Timestamp {
        let last = if state.current > 0 { state.bucket + 2 } else { state.bucket + 1 };
        Timestamp::from_millis(last.saturating_mul(self.window.get()))
    }

    fn refundable_until(&self, position: ChargePosition) -> Timestamp {
        Timestamp::from_millis(position.0.saturating_add(2).saturating_mul(self.window.get()))
    }
}
