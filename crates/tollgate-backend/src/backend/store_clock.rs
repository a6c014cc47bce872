//! The application's clock, corrected by the store's clock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::Clock;
use tollgate::model::{Millis, Timestamp};
use tollgate_redis::ClockOffset;

/// A store that estimates how far its own clock is ahead of the application's clock.
pub(crate) trait OffsetSource: Send + Sync {
    /// Returns how far the clock of a server is ahead of a clock that shows `now`. The server is
    /// the first server with a known time. Returns `None` before any server has returned its time.
    fn clock_offset(&self, now: Timestamp) -> Option<ClockOffset>;
}

/// The largest difference between the two clocks that is not corrected: half of the smallest
/// `skew_max` of the policy, which a reload may change. Zero if the store's clock always decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tolerance(Option<Arc<AtomicU64>>);

impl Tolerance {
    /// A tolerance of zero. The store's clock decides, however small the difference of the clocks
    /// is.
    pub(crate) const ZERO: Self = Self(None);

    /// Creates a tolerance of half of `skew_max`, which is in milliseconds.
    pub(crate) const fn half_of(skew_max: Arc<AtomicU64>) -> Self {
        Self(Some(skew_max))
    }

    /// Returns whether `offset` exceeds the tolerance. If so, the store's clock decides.
    pub(crate) fn is_exceeded(&self, offset: &ClockOffset) -> bool {
        let skew_max = |skew_max: &Arc<AtomicU64>| skew_max.load(Ordering::Relaxed);
        self.0.as_ref().is_none_or(|skew| !offset.is_within(Millis::new(skew_max(skew) / 2)))
    }
}

/// The application's clock, corrected by the clock of the first server with a known time.
///
/// This clock shows the application's time until a server's time is known, and while the two times
/// differ by at most the tolerance. While the times differ by more, this clock shows the server's
/// time. Even if the servers' clocks differ from each other, each server decides by its own clock.
///
/// A reading takes no round trip. The offset is estimated from the server's replies, against the
/// monotonic clock, so a step of the wall clock is detected when this clock is next read.
pub struct StoreClock<C> {
    clock: C,
    store: Arc<dyn OffsetSource>,
    tolerance: Tolerance,
}

impl<C> StoreClock<C> {
    pub(crate) const fn new(clock: C, store: Arc<dyn OffsetSource>, tolerance: Tolerance) -> Self {
        Self { clock, store, tolerance }
    }
}

impl<C: Clock> Clock for StoreClock<C> {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        match self.store.clock_offset(now) {
            Some(offset) if self.tolerance.is_exceeded(&offset) => offset.shift(now),
            Some(_) | None => now,
        }
    }
}

impl<C: fmt::Debug> fmt::Debug for StoreClock<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreClock").field("clock", &self.clock).finish_non_exhaustive()
    }
}
