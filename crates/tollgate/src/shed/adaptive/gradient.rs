//! By how long answers take now beside how long they took.

use std::num::NonZeroU32;

use tollgate_core::Timestamp;

use super::{Sample, SampleOutcome, WINDOW};

/// A bound that shrinks by the gradient of latency, and grows by a small queue where there is none.
///
/// After `Gradient2Limit` in Netflix's concurrency-limits ("Performance Under Load", 2018), with its
/// numbers: the short time is the mean of one [`WINDOW`] of answers, the long time an exponential
/// mean over 600 of them; the gradient is `1.5 × long ÷ short`, from a half to one; the bound
/// becomes `bound × gradient + 4`, smoothed by a fifth. Where less than half of it is in use it
/// stays: latency then says nothing of it. Answers that say that there is too much to do are not
/// measured: an error that comes fast is no fast service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gradient {
    /// In thousandths of a request.
    bound: u64,
    /// The long time, in thousandths of a microsecond; 0 before the first window.
    long: u64,
    /// How many windows the long time is made of, up to [`WARM_UP`].
    windows: u64,
    window: Window,
}

/// How many windows the long time looks back on.
const LONG: u64 = 600;

/// As long as there are fewer windows, the long time is their plain mean.
const WARM_UP: u64 = 10;

/// The fewest answers that a window needs to tell anything.
const LEAST_SAMPLES: u64 = 10;

/// What queue may stand, in thousandths of a request.
const QUEUE: u64 = 4_000;

/// How much longer than the long time the short one may be, in thousandths.
const TOLERANCE: u64 = 1_500;

/// The share of a new bound in the smoothed one, in thousandths.
const SMOOTHING: u64 = 200;

/// An answer that takes longer is taken for one of an hour, which keeps products exact.
const LONGEST_MICROS: u64 = 3_600_000_000;

const UNIT: u64 = 1_000;

/// Answers that are gathered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Window {
    began_at: Timestamp,
    sum_micros: u64,
    samples: u64,
    in_flight: u32,
}

impl Gradient {
    /// A bound that begins `at` so many requests.
    #[must_use]
    pub fn new(at: NonZeroU32) -> Self {
        let bound = u64::from(at.get()) * UNIT;
        Self { bound, long: 0, windows: 0, window: Window::default() }
    }

    /// Takes an answer in; the bound stays from `min` to `max`.
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

    /// Follows a window of answers that took `short` thousandths of a microsecond.
    fn follow(&mut self, short: u64, in_flight: u32) {
        self.lengthen(short);
        if u64::from(in_flight) * 2 * UNIT < self.bound {
            return;
        }
        let gradient = (self.long * TOLERANCE / short).clamp(500, 1_000);
        let bound = self.bound * gradient / 1_000 + QUEUE;
        self.bound = (self.bound * (1_000 - SMOOTHING) + bound * SMOOTHING) / 1_000;
    }

    /// Takes a window into the long time.
    fn lengthen(&mut self, short: u64) {
        if self.windows < WARM_UP {
            self.long = (self.long * self.windows + short) / (self.windows + 1);
            self.windows += 1;
        } else {
            self.long = (self.long * (LONG - 1) + short * 2) / (LONG + 1);
        }
        // A service that got faster should not be held to its slow days.
        if self.long > short * 2 {
            self.long = self.long * 95 / 100;
        }
    }

    /// The bound, in whole requests.
    #[must_use]
    pub fn get(&self) -> u32 {
        u32::try_from(self.bound / UNIT).unwrap_or(u32::MAX)
    }
}
