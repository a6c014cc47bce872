//! A bound on requests in flight that depends on the ratio of the long-term latency to the current
//! latency.

use std::num::NonZeroU32;

use tollgate_core::Timestamp;

use super::{Sample, SampleOutcome, WINDOW};

/// A bound on requests in flight that shrinks while latency rises, and otherwise grows slowly.
///
/// The algorithm and its constants are those of `Gradient2Limit` in Netflix's concurrency-limits
/// ("Performance Under Load", 2018). The short-term latency is the mean of one [`WINDOW`] of
/// responses. The long-term latency is an exponential mean over 600 windows. The gradient is
/// `1.5 × long ÷ short`, limited to the range from 0.5 to 1. After each window, the bound becomes
/// four fifths of the old bound plus one fifth of `bound × gradient + 4`. If less than half of the
/// bound is in use, the bound does not change, because the latency of so few requests does not
/// depend on the bound. Responses that report overload are not measured, because a fast error does
/// not mean a fast service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gradient {
    /// The bound, in thousandths of a request.
    bound: u64,
    /// The long-term latency, in thousandths of a microsecond; 0 before the first window.
    long: u64,
    /// The number of windows in the long-term latency, up to [`WARM_UP`].
    windows: u64,
    window: Window,
}

/// The number of windows over which the long-term latency is averaged.
const LONG: u64 = 600;

/// The number of first windows during which the long-term latency is the plain mean of all windows.
const WARM_UP: u64 = 10;

/// The fewest responses in a window that is evaluated.
const LEAST_SAMPLES: u64 = 10;

/// The number of requests that is added to each newly computed bound, in thousandths of a request.
/// The addition lets the bound grow, and tolerates a queue of this length.
const QUEUE: u64 = 4_000;

/// The tolerated ratio of the short-term latency to the long-term latency, in thousandths.
const TOLERANCE: u64 = 1_500;

/// The weight of the newly computed bound when it is averaged with the old bound, in thousandths.
const SMOOTHING: u64 = 200;

/// The longest latency that is measured: one hour. A longer latency counts as one hour, which keeps
/// products exact.
const LONGEST_MICROS: u64 = 3_600_000_000;

const UNIT: u64 = 1_000;

/// The responses of the current window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Window {
    began_at: Timestamp,
    sum_micros: u64,
    samples: u64,
    in_flight: u32,
}

impl Gradient {
    /// Creates a bound of `at` requests.
    #[must_use]
    pub fn new(at: NonZeroU32) -> Self {
        let bound = u64::from(at.get()) * UNIT;
        Self { bound, long: 0, windows: 0, window: Window::default() }
    }

    /// Updates the bound by one response that arrived at `now`. The bound stays between `min` and
    /// `max`.
    pub fn observe(&mut self, now: Timestamp, sample: Sample, min: NonZeroU32, max: NonZeroU32) {
        if sample.outcome == SampleOutcome::Overloaded {
            return;
        }
        let window = &mut self.window;
        if window.samples == 0 || now < window.began_at {
            *window = Window { began_at: now, ..Window::default() };
        }
        let micros = sample.micros.clamp(1, LONGEST_MICROS);
        window.sum_micros = window.sum_micros.saturating_add(micros);
        window.samples += 1;
        window.in_flight = window.in_flight.max(sample.in_flight);
        if now.since(window.began_at) < WINDOW || window.samples < LEAST_SAMPLES {
            return;
        }
        let Window { sum_micros, samples, in_flight, .. } = std::mem::take(window);
        self.follow(sum_micros / samples * UNIT, in_flight);
        self.bound = self.bound.min(u64::from(max.get()) * UNIT).max(u64::from(min.get()) * UNIT);
    }

    /// Updates the bound at the end of a window. `short` is the mean latency of the window in
    /// thousandths of a microsecond, and `in_flight` is the number of requests in flight.
    fn follow(&mut self, short: u64, in_flight: u32) {
        self.lengthen(short);
        if u64::from(in_flight) * 2 * UNIT < self.bound {
            return;
        }
        let gradient = (self.long * TOLERANCE / short).clamp(500, 1_000);
        let bound = self.bound * gradient / 1_000 + QUEUE;
        self.bound = (self.bound * (1_000 - SMOOTHING) + bound * SMOOTHING) / 1_000;
    }

    /// Adds the mean latency `short` of a window to the long-term latency.
    fn lengthen(&mut self, short: u64) {
        if self.windows < WARM_UP {
            self.long = (self.long * self.windows + short) / (self.windows + 1);
            self.windows += 1;
        } else {
            self.long = (self.long * (LONG - 1) + short * 2) / (LONG + 1);
        }
        // If the service became much faster, the long-term latency follows in larger steps.
        if self.long > short * 2 {
            self.long = self.long * 95 / 100;
        }
    }

    /// Returns the bound, in whole requests.
    #[must_use]
    pub fn get(&self) -> u32 {
        u32::try_from(self.bound / UNIT).unwrap_or(u32::MAX)
    }
}
