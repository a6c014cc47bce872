//! The status of a key.

use std::time::Duration;

use tollgate_core::{Admission, Limit, Reading, Timestamp};

/// The status of a key on the limit that matters most: the limit with the longest wait, or, if no
/// limit is used up, the limit with the smallest share of its units left.
///
/// ```
/// use tollgate::{Quota, RateLimiter};
///
/// let limiter = RateLimiter::per_key(Quota::per_minute(10));
/// assert!(limiter.try_check_n("alice", 4).is_admitted());
/// let status = limiter.try_peek("alice");
/// assert_eq!((status.limit(), status.used(), status.remaining()), (10, 4, 6));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Status {
    pub(super) now: Timestamp,
    pub(super) limit: u64,
    pub(super) used: u64,
    pub(super) resets_at: Timestamp,
    pub(super) admission: Admission,
}

impl Status {
    #[inline]
    pub(super) fn new(limit: &Limit, reading: &Reading, now: Timestamp) -> Self {
        let resets_at = match reading.fits_again {
            Admission::At(ready_at) => ready_at,
            Admission::Now | Admission::Never => reading.full_reset_at,
        };
        let Reading { used, admission, .. } = *reading;
        Self { now, limit: limit.capacity(), used, resets_at, admission }
    }

    /// Returns the status of an unused limit at `now`. `admission` states whether the status
    /// reports an admitted or a refused check.
    pub(super) fn unused(limit: &Limit, admission: Admission, now: Timestamp) -> Self {
        Self { now, limit: limit.capacity(), used: 0, resets_at: now, admission }
    }

    /// Compares two statuses. Returns the status with the longer wait, or, if the waits are equal,
    /// the status with the smaller share of its units left.
    #[inline]
    pub(super) fn tighter(self, other: Self) -> Self {
        let share = |one: &Self, of: &Self| u128::from(one.remaining()) * u128::from(of.limit);
        let is_tighter = match other.admission.cmp(&self.admission) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => share(&other, &self) < share(&self, &other),
        };
        if is_tighter { other } else { self }
    }

    /// Returns the most units that the key can have at the same time: the quota, or the burst of a
    /// token bucket.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_minute(10).burst(3));
    /// assert_eq!(limiter.try_peek("alice").limit(), 3);
    /// ```
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the units of the limit that the key has used.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// assert_eq!(RateLimiter::per_key(Quota::per_minute(10)).try_peek("alice").used(), 0);
    /// ```
    #[must_use]
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Returns the units of the limit that the key has left.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// assert_eq!(RateLimiter::per_key(Quota::per_minute(10)).try_peek("alice").remaining(), 10);
    /// ```
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Returns the time until all used units are available again. If too few units were left for
    /// the check, returns the time until enough units are left for it.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// assert!(RateLimiter::per_key(Quota::per_minute(9)).try_peek("alice").reset_after().is_zero());
    /// ```
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        Duration::from_millis(self.resets_at.since(self.now).get())
    }

    /// Returns the time after which a check is admitted if no other charge is made. The time is
    /// zero if the check fits now, and `None` if the check never fits. If no permit of a
    /// [concurrent](crate::Quota::concurrent) quota is free, the time is the mean time for which
    /// permits were held, and at least a second.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_minute(9));
    /// assert!(limiter.try_peek("alice").retry_after().unwrap().is_zero());
    /// ```
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.admission {
            Admission::Now => Some(Duration::ZERO),
            Admission::At(ready_at) => Some(Duration::from_millis(ready_at.since(self.now).get())),
            Admission::Never => None,
        }
    }
}
