//! Additive increase, multiplicative decrease.

use std::num::NonZeroU32;

use tollgate_core::{Millis, Timestamp};

use super::{Sample, SampleOutcome, WINDOW};

/// One more with each answer in time while at least half of the bound is in use; a tenth less when
/// an answer says that there is too much to do, or takes too long.
///
/// The rule is that of TCP's congestion avoidance (Chiu and Jain, "Analysis of the Increase and
/// Decrease Algorithms for Congestion Avoidance", 1989), with the numbers of `AIMDLimit` in
/// Netflix's concurrency-limits. It goes down once in a [`WINDOW`] at most: requests that were in
/// flight together tell of one overload, not of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aimd {
    /// In thousandths of a request.
    bound: u64,
    timeout: Millis,
    lessened_at: Option<Timestamp>,
}

/// What is left of a bound that goes down, in thousandths.
const BACKOFF: u64 = 900;

const UNIT: u64 = 1_000;

impl Aimd {
    /// A bound that begins `at` so many requests.
    #[must_use]
    pub fn new(at: NonZeroU32, timeout: Millis) -> Self {
        Self { bound: u64::from(at.get()) * UNIT, timeout, lessened_at: None }
    }

    /// Takes an answer in; the bound stays from `min` to `max`.
    pub fn observe(&mut self, now: Timestamp, sample: Sample, min: NonZeroU32, max: NonZeroU32) {
        let is_late = sample.micros / 1_000 > self.timeout.get();
        if is_late || sample.outcome == SampleOutcome::Overloaded {
            self.lessen(now);
        } else if u64::from(sample.in_flight) * 2 * UNIT >= self.bound {
            self.bound += UNIT;
        }
        self.bound = self.bound.min(u64::from(max.get()) * UNIT).max(u64::from(min.get()) * UNIT);
    }

    fn lessen(&mut self, now: Timestamp) {
        // A clock that was set back is later than nothing.
        let is_known = |at: Timestamp| now >= at && now.since(at) < WINDOW;
        if !self.lessened_at.is_some_and(is_known) {
            self.bound = self.bound * BACKOFF / 1_000;
            self.lessened_at = Some(now);
        }
    }

    /// The bound, in whole requests.
    #[must_use]
    pub fn get(&self) -> u32 {
        u32::try_from(self.bound / UNIT).unwrap_or(u32::MAX)
    }
}
