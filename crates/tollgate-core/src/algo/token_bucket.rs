//! Token bucket: refills at a constant rate, up to a burst. Its decisions equal those of the
//! generic cell rate algorithm (GCRA).
//!
//! Source: the continuous-state leaky bucket of ITU-T I.371 (1996), annex A, expressed as the
//! tokens that are left. GCRA's theoretical arrival time corresponds to the time at which the
//! bucket is full. The level is stored as tokens multiplied by the window in milliseconds, so each
//! millisecond adds exactly `quota` to the level.

use super::{CellStep, PlainStep, StepTime};
use crate::charge_id::ChargeId;
use crate::charge_position::ChargePosition;
use crate::cost::Cost;
use crate::limit_error::{LimitError, check_range, check_span, check_units};
use crate::reading::{Admission, Reading, StoredState};
use crate::time::{MAX_EXACT, Millis, Timestamp};

/// A bucket with room for `burst` tokens, in which `quota` tokens per `window` arrive at a constant
/// rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    quota: u64,
    window: Millis,
    burst: u64,
}

/// The stored state of a bucket that is not full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The tokens in the bucket, multiplied by the window in milliseconds.
    pub level: u64,
    /// The time at which the level was computed.
    pub at: Timestamp,
}

impl TokenBucket {
    /// Creates a bucket in which `quota` tokens per `window` arrive and which has room for `burst`
    /// tokens.
    ///
    /// # Errors
    /// [`LimitError`] if a number is zero or above its largest allowed value, or if `burst ×
    /// window` in milliseconds exceeds 2^53 − 1.
    pub fn new(quota: u64, window: Millis, burst: u64) -> Result<Self, LimitError> {
        check_units("quota", quota)?;
        check_span("window", window)?;
        check_units("burst", burst)?;
        let largest = MAX_EXACT / window.get();
        let because = "because burst × window in milliseconds must be below 2^53";
        check_range("burst", burst, largest, because)?;
        Ok(Self { quota, window, burst })
    }

    /// Returns the tokens that arrive per window.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// Returns the time in which `quota` tokens arrive.
    #[must_use]
    pub const fn window(&self) -> Millis {
        self.window
    }

    /// Returns the capacity of the bucket in tokens.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// Returns the time in which an empty bucket fills, rounded up to a millisecond.
    #[must_use]
    pub const fn fill_time(&self) -> Millis {
        Millis::new(self.full().div_ceil(self.quota))
    }

    /// Returns the level of a full bucket.
    const fn full(&self) -> u64 {
        self.burst * self.window.get()
    }

    /// Returns the bucket with the tokens that have arrived until the time of `at`, and whether
    /// `state` was missing, present or discarded. If `state` has a later time than `at`, returns
    /// the bucket as of that later time.
    ///
    /// A charge with a larger burst can leave more tokens than this bucket has room for. This
    /// bucket is then full.
    #[inline(always)]
    fn current(&self, state: Option<&State>, at: StepTime) -> (State, StoredState) {
        let full = State { level: self.full(), at: at.now };
        let Some(state) = state else { return (full, StoredState::Missing) };
        if at.is_from_future(state.at) {
            return (full, StoredState::Discarded);
        }
        let now = at.now.max(state.at);
        let missing = self.full().saturating_sub(state.level);
        let elapsed = now.since(state.at).get();
        // A product beyond 64 bits exceeds the missing level in any case, so the multiplication can
        // saturate.
        let arrived = elapsed.saturating_mul(self.quota);
        if arrived >= missing {
            return (State { at: now, ..full }, StoredState::Missing);
        }
        (State { level: state.level + arrived, at: now }, StoredState::Present)
    }

    /// Returns whether the bucket `state` has enough tokens for `cost`.
    #[inline(always)]
    fn has(&self, state: &State, cost: Cost) -> bool {
        // A cost beyond 64 bits exceeds every level, so the multiplication can saturate.
        // Multiplying is faster than dividing the level to get whole tokens.
        cost.needed().saturating_mul(self.window.get()) <= state.level
    }

    /// Returns the state without the tokens of `cost`.
    #[inline(always)]
    fn without(&self, state: &State, cost: Cost) -> State {
        let taken = cost.get().min(self.burst) * self.window.get();
        State { level: state.level.saturating_sub(taken), ..*state }
    }

    /// Returns the reading for a charge of `cost` on the bucket `state`, at the time `state.at`.
    /// `found` becomes the reading's [`found`](Reading::found).
    #[inline(always)]
    fn reading(&self, state: &State, found: StoredState, cost: Cost) -> Reading {
        let window = self.window.get();
        let missing = self.full() - state.level;
        let admission = if self.has(state, cost) {
            Admission::Now
        } else if cost.needed() <= self.burst {
            Admission::At(self.risen_at(state, cost.needed() * window - state.level))
        } else {
            Admission::Never
        };
        Reading {
            admission,
            fits_again: admission,
            used: self.burst - state.level / window,
            full_reset_at: self.risen_at(state, missing),
            position: ChargePosition(state.at.after(Millis::new(missing / self.quota)).as_millis()),
            refunded: 0,
            added: 0,
            reserved: 0,
            found,
        }
    }

    /// Returns the time at which the level of the bucket `state` will have risen by `missing`, if
    /// no tokens are taken.
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
        self.reading(&state, found, cost)
    }

    /// Takes the tokens of `cost` out of the bucket. A refused charge that the limit counts takes
    /// at most the tokens that are left, so the level is never below zero.
    #[inline(always)]
    fn charge(&self, state: Option<State>, cost: Cost, _id: ChargeId, at: StepTime) -> State {
        let (state, _) = self.current(state.as_ref(), at);
        self.without(&state, cost)
    }

    /// Puts the tokens of a charge back into the bucket, except tokens that the bucket has already
    /// regained by refilling.
    ///
    /// `position` is the time at which the bucket would be full again if no charge followed the
    /// refunded one. From that time on, nothing is missing because of the charge, so a refund
    /// returns no tokens. Before that time, a refund returns at most the tokens that will arrive
    /// until then. A refund therefore never creates more tokens than were charged. The time is
    /// rounded down to a whole millisecond, so a refund can return slightly too few tokens, which
    /// arrive by themselves within one millisecond.
    ///
    /// The position does not reflect later refunds. The first refund is therefore exact, and each
    /// further refund may return tokens that the bucket had already regained. In any interval, the
    /// admitted and not refunded cost is at most `burst`, plus the tokens that arrive in the
    /// interval, plus the tokens that those further refunds returned.
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

    /// Advances both states to the later of their times and keeps the state with fewer tokens.
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

impl PlainStep for TokenBucket {
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
        let next = self.without(&current, cost);
        Ok((next, self.reading(&next, found, cost)))
    }
}
