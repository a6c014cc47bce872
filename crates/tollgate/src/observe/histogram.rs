//! Histograms of durations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Stopwatch;

/// The upper bounds of the buckets, in microseconds. The lowest bounds are for decisions within
/// this process, the highest for decisions that waited for a distant store. Durations above the
/// highest bound are counted in one more bucket.
pub const DURATION_BUCKETS: [u64; 14] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 15_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000,
];

/// Counts durations in buckets. Each duration costs two relaxed additions, and takes no lock.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; DURATION_BUCKETS.len() + 1],
    sum_micros: AtomicU64,
}

/// The counts of a [`Histogram`] at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    counts: [u64; DURATION_BUCKETS.len() + 1],
    /// The sum of all durations, in microseconds.
    pub sum_micros: u64,
}

/// A guard that measures the time until it is dropped. Work that is cancelled drops its guard, so
/// its time is counted. Cancelled work usually took the longest.
#[derive(Debug)]
pub struct Measuring<'h> {
    histogram: &'h Histogram,
    since: Stopwatch,
}

impl Histogram {
    /// Returns a guard. When the guard is dropped, the time since this call is counted.
    #[must_use]
    pub fn measure(&self) -> Measuring<'_> {
        Measuring { histogram: self, since: Stopwatch::start() }
    }

    /// Counts `duration` in the first bucket whose upper bound is at least `duration`.
    pub fn observe(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = DURATION_BUCKETS.partition_point(|bound| *bound < micros);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Returns a snapshot of the counts.
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

    /// Returns a snapshot with the durations of both snapshots.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let count = |bucket: usize| self.counts[bucket].saturating_add(other.counts[bucket]);
        Self {
            counts: std::array::from_fn(count),
            sum_micros: self.sum_micros.saturating_add(other.sum_micros),
        }
    }

    /// Returns the durations that were counted between the snapshot `earlier` and this snapshot of
    /// the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let count = |bucket: usize| self.counts[bucket].saturating_sub(earlier.counts[bucket]);
        Self {
            counts: std::array::from_fn(count),
            sum_micros: self.sum_micros.saturating_sub(earlier.sum_micros),
        }
    }

    /// Returns the duration in microseconds that `percent` percent of the durations do not exceed,
    /// interpolated within its bucket. Returns `None` if there are no durations, and the highest
    /// bound if the duration is above that bound.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = self.count().saturating_mul(percent).div_ceil(100).max(1);
        let (mut below, mut counted) = (0, 0);
        for (bound, up_to) in self.cumulative() {
            if up_to >= rank {
                let Some(bound) = bound else { return Some(below) };
                let share = (bound - below).saturating_mul(rank - counted) / (up_to - counted);
                return Some(below + share);
            }
            (below, counted) = (bound.unwrap_or(below), up_to);
        }
        None
    }

    /// Returns the upper bound of each bucket in microseconds, with the number of durations that do
    /// not exceed this bound. The last bucket has no bound (`None`), so its number is the number of
    /// all durations.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let bounds = DURATION_BUCKETS.iter().copied().map(Some).chain([None]);
        bounds.zip(&self.counts).scan(0, |all, (bound, count)| {
            *all += count;
            Some((bound, *all))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(micros: impl IntoIterator<Item = u64>) -> Observed {
        let histogram = Histogram::default();
        micros.into_iter().for_each(|micros| histogram.observe(Duration::from_micros(micros)));
        histogram.read()
    }

    #[test]
    fn percentiles_are_interpolated_within_their_bucket() {
        assert_eq!(Observed::NOTHING.percentile(99), None);
        let hundred = observed((0..100).map(|at| if at < 90 { 40 } else { 300 }));
        assert_eq!(hundred.percentile(50), Some(27));
        assert_eq!(hundred.percentile(90), Some(50));
        assert_eq!(hundred.percentile(99), Some(475));
        assert_eq!(observed([5_000_000]).percentile(99), Some(1_000_000));
    }

    #[test]
    fn the_durations_after_a_snapshot_are_its_difference() {
        let (earlier, later) = (observed([40, 300]), observed([40, 300, 300, 9_000]));
        assert_eq!(later.since(&earlier), observed([300, 9_000]));
        assert_eq!(later.since(&earlier).plus(&earlier), later);
        assert_eq!(earlier.since(&later).count(), 0);
    }
}
