//! The quota of a limit: its numbers, and the same limit with another quota.

use super::{Algorithm, Limit, LimitError};
use crate::algo::{Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket};
use crate::time::Millis;

impl Limit {
    /// Returns the most units that can be in use at once: the quota, or the burst of a token
    /// bucket.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match &self.algorithm {
            Algorithm::FixedWindow(limit) => limit.quota(),
            Algorithm::SlidingWindow(limit) => limit.quota(),
            Algorithm::TwoBucket(limit) => limit.quota(),
            Algorithm::SlidingLog(limit) => limit.quota(),
            Algorithm::TokenBucket(limit) => limit.burst(),
            Algorithm::Concurrency(limit) => limit.quota(),
        }
    }

    /// Returns the quota and its window as the policy defines them. For a token bucket, the quota
    /// is the number of tokens that arrive in the window, whatever the burst. For a schedule, the
    /// window is the usual length.
    #[must_use]
    pub fn quota_per_window(&self) -> (u64, Millis) {
        match &self.algorithm {
            Algorithm::FixedWindow(limit) => (limit.quota(), limit.nominal_window()),
            Algorithm::TokenBucket(limit) => (limit.quota(), limit.window()),
            _ => (self.capacity(), self.window()),
        }
    }

    /// Returns the burst of a token bucket if it differs from the quota, otherwise `None`.
    #[must_use]
    pub const fn burst(&self) -> Option<u64> {
        match &self.algorithm {
            Algorithm::TokenBucket(limit) if limit.burst() != limit.quota() => Some(limit.burst()),
            _ => None,
        }
    }

    /// Returns the limit with another quota and the same counters: used units stay used, and
    /// running windows end at the same time. A token bucket gets the burst `burst`. If `burst` is
    /// `None`, a bucket with a burst equal to the old quota gets the new quota as burst, and any
    /// other bucket keeps its burst. Other algorithms ignore `burst`. The result has no candidate
    /// and is enforced for every subject. If the limit [replaced](Self::predecessor) another one,
    /// the result takes over the usage of that one with the same quota.
    ///
    /// # Errors
    /// [`LimitError`] for a quota that the algorithm cannot count.
    pub fn with_quota(&self, quota: u64, burst: Option<u64>) -> Result<Self, LimitError> {
        let algorithm = match &self.algorithm {
            Algorithm::FixedWindow(limit) => {
                Algorithm::FixedWindow(FixedWindow::new(quota, limit.window(), limit.anchor())?)
            }
            Algorithm::SlidingWindow(limit) => {
                let limit = SlidingWindow::new(quota, limit.window(), limit.precision())?;
                Algorithm::SlidingWindow(limit)
            }
            Algorithm::TwoBucket(limit) => {
                Algorithm::TwoBucket(TwoBucket::new(quota, limit.window())?)
            }
            Algorithm::SlidingLog(limit) => {
                Algorithm::SlidingLog(SlidingLog::new(quota, limit.window())?)
            }
            Algorithm::TokenBucket(limit) => {
                let held = if limit.burst() == limit.quota() { quota } else { limit.burst() };
                let burst = burst.unwrap_or(held);
                Algorithm::TokenBucket(TokenBucket::new(quota, limit.window(), burst)?)
            }
            Algorithm::Concurrency(limit) => {
                Algorithm::Concurrency(Concurrency::new(quota, limit.permit_ttl())?)
            }
        };
        let limit = self.clone().without_candidate().with_algorithm(algorithm, self.reservation);
        limit.reservation.check(limit.capacity())?;
        Ok(limit.with_predecessor_quota(quota, burst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algo::Anchor;
    use crate::limit::OnChange;

    #[test]
    fn another_quota_is_counted_in_the_same_place() {
        let minute = Millis::from_secs(60);
        let algorithms = [
            Algorithm::FixedWindow(FixedWindow::new(5, minute, Anchor::Calendar).unwrap()),
            Algorithm::SlidingWindow(SlidingWindow::new(5, minute, minute).unwrap()),
            Algorithm::TwoBucket(TwoBucket::new(5, minute).unwrap()),
            Algorithm::SlidingLog(SlidingLog::new(5, minute).unwrap()),
            Algorithm::TokenBucket(TokenBucket::new(5, minute, 5).unwrap()),
            Algorithm::Concurrency(Concurrency::new(5, minute).unwrap()),
        ];
        for on_change in [OnChange::Keep, OnChange::Restart] {
            for algorithm in algorithms {
                let limit = Limit::new("core", algorithm).unwrap().with_on_change(on_change);
                let other = limit.with_quota(7, None).unwrap();
                assert_eq!(other.capacity(), 7, "{algorithm:?}");
                assert_eq!(other.state_digest(), limit.state_digest());
                assert_eq!(other.generation(), limit.generation());
                assert!(limit.with_quota(0, None).is_err());
                assert_eq!(other.with_quota(5, None).unwrap(), limit);
            }
        }
        let bucket = TokenBucket::new(5, minute, 50).unwrap();
        let bucket = Limit::new("core", Algorithm::TokenBucket(bucket)).unwrap();
        assert_eq!(bucket.with_quota(7, None).unwrap().capacity(), 50);
        assert_eq!(bucket.with_quota(7, Some(9)).unwrap().capacity(), 9);
    }
}
