//! A budget of bytes for states larger than [`LARGE`]. The whole store shares one budget, so a
//! state may grow beyond the bytes of its shard.

use std::sync::atomic::Ordering;

use super::sync::AtomicUsize;

/// The bytes that a state may allocate within its shard's budget. A larger state is charged to the
/// [`Pool`] instead.
pub(super) const LARGE: usize = 4 * 1024;

/// The number of buckets among which limits are divided. Two limits in the same bucket share one
/// part of the pool, as if they were one limit.
const BUCKETS: usize = 64;

/// The budget of bytes for all large states and for the states of all overflow counters.
///
/// A limit may take at most as many bytes as remain free ("dynamic thresholds", Choudhury and
/// Hahne, 1998). A limit that uses the pool alone can therefore take half of the pool. A second
/// limit can then take half of the rest, a quarter of the pool.
pub(super) struct Pool {
    bytes: usize,
    used: AtomicUsize,
    of_limits: [AtomicUsize; BUCKETS],
}

/// Returns the bucket of the limit with this state digest.
pub(super) const fn bucket(digest: u128) -> u8 {
    ((digest ^ (digest >> 64)) as usize % BUCKETS) as u8
}

impl Pool {
    /// Creates a pool of `bytes`, all of which are free.
    pub(super) fn new(bytes: usize) -> Self {
        let of_limits = std::array::from_fn(|_| AtomicUsize::new(0));
        Self { bytes, used: AtomicUsize::new(0), of_limits }
    }

    /// Allocates `bytes` to the limits in `bucket` if enough bytes are free. Returns whether the
    /// bytes were allocated.
    pub(super) fn try_allocate(&self, bucket: u8, bytes: usize) -> bool {
        let of_limit = self.of_limit(bucket).load(Ordering::Relaxed);
        let fits = |used: usize| {
            let free = self.bytes.checked_sub(used)?.checked_sub(bytes)?;
            (of_limit.saturating_add(bytes) <= free).then(|| used + bytes)
        };
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            return false;
        }
        self.of_limit(bucket).fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// Counts `bytes` of the limits in `bucket` as used, without a check. The caller has reserved
    /// these bytes before.
    pub(super) fn allocate(&self, bucket: u8, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.of_limit(bucket).fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts `bytes` from the bytes in use, in total and by the limits in `bucket`.
    pub(super) fn release(&self, bucket: u8, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.of_limit(bucket).fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes in use, in total and by the limits in `bucket`.
    #[cfg(all(test, shuttle))]
    pub(super) fn used(&self, bucket: u8) -> (usize, usize) {
        let of_limit = self.of_limit(bucket).load(Ordering::Relaxed);
        (self.used.load(Ordering::Relaxed), of_limit)
    }

    fn of_limit(&self, bucket: u8) -> &AtomicUsize {
        &self.of_limits[usize::from(bucket) % BUCKETS]
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_limit_takes_no_more_than_it_leaves_free() {
        let pool = Pool::new(1_000);
        assert!(pool.try_allocate(1, 500));
        assert!(!pool.try_allocate(1, 1));
        assert!(pool.try_allocate(2, 250));
        assert!(!pool.try_allocate(2, 1));
        assert!(pool.try_allocate(3, 125));
        pool.release(1, 500);
        assert!(pool.try_allocate(2, 50));
        assert!(!pool.try_allocate(4, usize::MAX));
    }
}
