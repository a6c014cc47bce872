//! Histograms of durations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Stopwatch;

/// The upper bounds of the buckets, in microseconds: from a decision in this process to one that
/// waited for a distant store. Longer durations are counted in one more bucket.
pub const DURATION_BUCKETS: [u64; 14] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 15_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000,
];

/// Counts durations: two relaxed additions for each, without a lock.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; DURATION_BUCKETS.len() + 1],
    sum_micros: AtomicU64,
}

/// A snapshot of a [`Histogram`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    counts: [u64; DURATION_BUCKETS.len() + 1],
    /// The sum of all durations, in microseconds.
    pub sum_micros: u64,
}

/// Measures the time until it is dropped. This includes work that is cancelled, which took longest.
#[derive(Debug)]
pub(crate) struct Measuring<'h> {
    histogram: &'h Histogram,
    since: Stopwatch,
}

impl Histogram {
    /// Returns a guard. When it is dropped, the time since this call is counted.
    pub(crate) fn measure(&self) -> Measuring<'_> {
        Measuring { histogram: self, since: Stopwatch::start() }
    }

    /// Counts `duration` in the first bucket whose bound is not below it.
    pub fn observe(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = DURATION_BUCKETS.partition_point(|bound| *bound < micros);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Returns a snapshot.
    #[must_use]
    pub fn read(&self) -> Observed {
        let count = |bucket: usize| self.counts[bucket].load(Ordering::Relaxed);
        Observed {
            counts: std::array::from_fn(count),
            sum_micros: self.sum_micros.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Measuring<'_> {
    fn drop(&mut self) {
        self.histogram.observe(Duration::from_micros(self.since.micros()));
    }
}

impl Observed {
    /// A snapshot without durations.
    pub const NOTHING: Self = Self { counts: [0; DURATION_BUCKETS.len() + 1], sum_micros: 0 };

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns each bound in microseconds with the number of durations up to it; the last has no
    /// bound.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let bounds = DURATION_BUCKETS.iter().copied().map(Some).chain([None]);
        bounds.zip(&self.counts).scan(0, |all, (bound, count)| {
            *all += count;
            Some((bound, *all))
        })
    }
}
