//! A bound on requests in flight with additive increase and multiplicative decrease.

use std::num::NonZeroU32;

use tollgate_core::{Millis, Timestamp};

use super::{Sample, SampleOutcome, WINDOW};

/// A bound on requests in flight. The bound grows by one with each timely response while at least
/// half of the bound is in use. The bound shrinks by a tenth when a response reports overload or
/// arrives after the timeout.
///
/// The rule is that of TCP's congestion avoidance (Chiu and Jain, "Analysis of the Increase and
/// Decrease Algorithms for Congestion Avoidance", 1989), with the numbers of `AIMDLimit` in
/// Netflix's concurrency-limits. The bound shrinks at most once in a [`WINDOW`], because the
/// responses of requests that were in flight together report the same overload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aimd {
    /// The bound, in thousandths of a request.
    bound: u64,
    timeout: Millis,
    lessened_at: Option<Timestamp>,
}

/// The factor by which the bound shrinks, in thousandths.
const BACKOFF: u64 = 900;

const UNIT: u64 = 1_000;

impl Aimd {
    /// Creates a bound of `at` requests. A response that takes longer than `timeout` shrinks the
    /// bound.
    #[must_use]
    pub fn new(at: NonZeroU32, timeout: Millis) -> Self {
        Self { bound: u64::from(at.get()) * UNIT, timeout, lessened_at: None }
    }

    /// Updates the bound by one response that arrived at `now`. The bound stays between `min` and
    /// `max`.
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
        // A clock that was set back does not delay the next decrease of the bound.
        let is_known = |at: Timestamp| now >= at && now.since(at) < WINDOW;
        if !self.lessened_at.is_some_and(is_known) {
            self.bound = self.bound * BACKOFF / 1_000;
            self.lessened_at = Some(now);
        }
    }

    /// Returns the bound, in whole requests.
    #[must_use]
    pub fn get(&self) -> u32 {
        u32::try_from(self.bound / UNIT).unwrap_or(u32::MAX)
    }
}
