//! A histogram of durations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The width of a bucket.
const WIDTH: Duration = Duration::from_micros(250);
/// The number of buckets. The last bucket also counts all longer durations.
const BUCKETS: usize = 2_000;

/// A histogram of durations with buckets of 250 µs, up to 500 ms.
#[derive(Debug)]
pub(crate) struct Latency(Vec<AtomicU64>);

impl Default for Latency {
    fn default() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Latency {
    /// Counts the duration `time`.
    pub(crate) fn took(&self, time: Duration) {
        let bucket = time.as_micros() / WIDTH.as_micros();
        let bucket = usize::try_from(bucket).unwrap_or(BUCKETS).min(BUCKETS - 1);
        self.0[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the 99.9th percentile in whole milliseconds, rounded up.
    pub(crate) fn p999_millis(&self) -> u64 {
        let counts: Vec<u64> = self.0.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        let wanted = all - all / 1_000;
        let mut sum = 0;
        let within = counts.iter().take_while(|count| {
            sum += **count;
            sum < wanted
        });
        let upper = (within.count() as u32 + 1) * WIDTH;
        if all == 0 { 0 } else { upper.as_micros().div_ceil(1_000) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_thousand_may_be_late() {
        let latency = Latency::default();
        assert_eq!(latency.p999_millis(), 0);
        for _ in 0..999 {
            latency.took(Duration::from_micros(800));
        }
        latency.took(Duration::from_secs(9));
        assert_eq!(latency.p999_millis(), 1);
        latency.took(Duration::from_secs(9));
        assert_eq!(latency.p999_millis(), 500);
    }
}
