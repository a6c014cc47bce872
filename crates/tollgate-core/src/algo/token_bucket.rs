//! Token bucket: refills evenly, up to a burst. Equal to the generic cell rate algorithm.
//!
//! Source: the continuous-state leaky bucket of ITU-T I.371 (1996), annex A, seen as the tokens
//! that are left; GCRA's theoretical arrival time is the moment at which the bucket is full.
//! The level is kept in units of 1/window token, so that a millisecond adds exactly `quota` units.

use super::{CellStep, StepTime};
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::limit_error::{LimitError, check_range, check_span, check_units};
use crate::reading::{Admission, Reading, StoredState};
use crate::time::{MAX_EXACT, Millis, Timestamp};

/// `quota` tokens arrive evenly per `window`; at most `burst` are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    quota: u64,
    window: Millis,
    burst: u64,
}

/// A bucket that is not full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Tokens times the window in milliseconds.
    pub level: u64,
    /// When the level was computed.
    pub at: Timestamp,
}

impl TokenBucket {
    /// `quota` tokens per `window`, up to `burst`.
    ///
    /// # Errors
    /// [`LimitError`] for a zero, or where `burst × window` in milliseconds passes 2^53 − 1.
    pub fn new(quota: u64, window: Millis, burst: u64) -> Result<Self, LimitError> {
        check_units("quota", quota)?;
        check_span("window", window)?;
        check_units("burst", burst)?;
        let largest = MAX_EXACT / window.get();
        let because = "so that burst × window in milliseconds stays below 2^53";
        check_range("burst", burst, largest, because)?;
        Ok(Self { quota, window, burst })
    }

    /// Tokens that arrive per window.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// The time in which `quota` tokens arrive.
    #[must_use]
    pub const fn window(&self) -> Millis {
        self.window
    }

    /// The most tokens that are kept.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// The time in which an empty bucket fills, rounded up to a millisecond.
    #[must_use]
    pub const fn fill_time(&self) -> Millis {
        Millis::new(self.full().div_ceil(self.quota))
    }

    /// The level of a full bucket.
    const fn full(&self) -> u64 {
        self.burst * self.window.get()
    }

    /// The level as of now.
    #[inline(always)]
    fn current(&self, state: Option<&State>, at: StepTime) -> (State, StoredState) {
        let full = State { level: self.full(), at: at.now };
        let Some(state) = state else { return (full, StoredState::Missing) };
        if at.is_from_future(state.at) || state.level > self.full() {
            return (full, StoredState::Discarded);
        }
        let now = at.now.max(state.at);
        let missing = self.full() - state.level;
        let elapsed = now.since(state.at).get();
        // What passes 64 bits passes what is missing too.
        let arrived = elapsed.saturating_mul(self.quota);
        if arrived >= missing {
            return (State { at: now, ..full }, StoredState::Missing);
        }
        (State { level: state.level + arrived, at: now }, StoredState::Present)
    }

    /// The moment at which the level has risen by `missing`.
    #[inline(always)]
    fn risen_at(&self, state: &State, missing: u64) -> Timestamp {
        state.at.after(Millis::new(missing.div_ceil(self.quota)))
    }
}

impl CellStep for TokenBucket {
    type State = State;

    #[inline(always)]
    fn read(&self, state: Option<&State>, cost: Cost, at: StepTime) -> Reading {
        let (state, found) = self.current(state, at);
        let window = self.window.get();
        let tokens = state.level / window;
        let missing = self.full() - state.level;
        // What passes 64 bits passes every level; a product is faster than `<= tokens`.
        let admission = if cost.needed().saturating_mul(window) <= state.level {
            Admission::Now
        } else if cost.needed() <= self.burst {
            Admission::At(self.risen_at(&state, cost.needed() * window - state.level))
        } else {
            Admission::Never
        };
        Reading {
            admission,
            fits_again: admission,
            used: self.burst - tokens,
            full_reset_at: self.risen_at(&state, missing),
            position: ChargePosition(state.at.after(Millis::new(missing / self.quota)).as_millis()),
            refunded: 0,
            added: 0,
            reserved: 0,
            found,
        }
    }

    /// A refused charge that counts takes what is left: the bucket has no debts.
    #[inline(always)]
    fn take(&self, state: Option<State>, cost: Cost, _id: ChargeId, at: StepTime) -> State {
        let (state, _) = self.current(state.as_ref(), at);
        let taken = cost.get().min(self.burst) * self.window.get();
        State { level: state.level.saturating_sub(taken), ..state }
    }

    /// Gives back what of the tokens had not arrived again by itself.
    ///
    /// `position` is the moment at which the bucket, left alone after the charge, would have been full.
    /// From then on the charge is over. Before it, a bucket that had never been charged would have
    /// turned away what arrived above its rim: so at most the tokens that arrive until that moment
    /// are given back, and no refund makes more than was taken. The moment is a whole millisecond,
    /// rounded down: what a refund leaves out of it arrives by itself within one millisecond.
    ///
    /// The mark does not know of refunds that come later. So one refund by itself is exact, and of
    /// several each after the first may give what had arrived already: in any stretch the admitted,
    /// unrefunded cost is at most `burst`, what arrives in it, and what those others gave back.
    fn refund(
        &self,
        state: &mut State,
        cost: Cost,
        position: ChargePosition,
        _id: ChargeId,
        at: StepTime,
    ) -> u64 {
        let (now, _) = self.current(Some(state), at);
        let outstanding = Timestamp::from_millis(position.0).since(now.at).get();
        let missing = self.full() - now.level;
        let owed = outstanding.saturating_mul(self.quota).min(missing);
        let given = cost.get().min(self.burst).saturating_mul(self.window.get()).min(owed);
        if given > 0 {
            *state = State { level: now.level + given, ..now };
        }
        given.div_ceil(self.window.get())
    }

    /// The emptier one, as of when the later one was computed.
    fn join(&self, one: State, other: State) -> State {
        let at = StepTime { now: one.at.max(other.at), skew_max: Millis::ZERO };
        let ((one, _), (other, _)) = (self.current(Some(&one), at), self.current(Some(&other), at));
        State { level: one.level.min(other.level), at: at.now }
    }

    #[inline(always)]
    fn expires_at(&self, state: &State) -> Timestamp {
        self.risen_at(state, self.full().saturating_sub(state.level))
    }

    fn refundable_until(&self, position: ChargePosition) -> Timestamp {
        Timestamp::from_millis(position.0)
    }
}
