//! The choice of the time at which a job is decided.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;
use tollgate_core::time::DEFAULT_SKEW_MAX;
use tollgate_core::{Millis, Timestamp};

use crate::offset::ShardClock;

/// The clock that gives the time of decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionClock {
    /// The application's clock. Each call contains its time.
    #[default]
    Application,
    /// The shard's clock, estimated from the shard's replies. Until the first reply, the time in
    /// the call is used.
    Shard,
}

/// The largest difference between the time of a waiting job and the shard's clock, if the shard's
/// clock decides. If the difference is larger, the job gets a new time.
const SHARD_TIME_TTL: Millis = Millis::from_secs(1);

/// Chooses the times of a store's jobs.
#[derive(Debug, Default)]
pub(crate) struct DecisionTime {
    clock: DecisionClock,
    /// Whether the application's clock is compared with the shard's clock.
    is_checked: AtomicBool,
}

/// The time of a job, and the largest permitted difference of this time from the shard's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobTime {
    /// The time of the decision.
    pub(crate) now: Timestamp,
    /// The largest difference from the shard's clock with which the job is sent. If the difference
    /// is larger, the shard's time replaces [`now`](Self::now). `None` if the job's time is final.
    pub(crate) tolerance: Option<Millis>,
}

impl From<Timestamp> for JobTime {
    /// Returns a job time that the shard's clock never replaces.
    fn from(now: Timestamp) -> Self {
        Self { now, tolerance: None }
    }
}

impl DecisionTime {
    pub(crate) const fn set_clock(&mut self, clock: DecisionClock) {
        self.clock = clock;
    }

    /// From now on, compares the application's clock with the shard's clock.
    pub(crate) fn check(&self) {
        self.is_checked.store(true, Ordering::Relaxed);
    }

    /// Returns the time of a job that was created at `started`, when the application's clock showed
    /// `now`. `skews` contains, for each limit of the job, how far in the future stored state may
    /// be.
    ///
    /// The application's clock may differ from the shard's clock by up to half of the smallest
    /// value in `skews`. If the clocks differ by more, the job gets the shard's time. Two nodes
    /// with clocks that differ from the shard's clock in opposite directions then differ from each
    /// other by at most the smallest value, so neither node discards state that the other node
    /// stored.
    pub(crate) fn of_job(
        &self,
        shard: &ShardClock,
        now: Timestamp,
        started: Instant,
        skews: impl Iterator<Item = Millis>,
    ) -> JobTime {
        match self.clock {
            DecisionClock::Shard => match shard.time(started) {
                Some(now) => JobTime { now, tolerance: Some(SHARD_TIME_TTL) },
                None => JobTime { now, tolerance: Some(Millis::ZERO) },
            },
            DecisionClock::Application if self.is_checked.load(Ordering::Relaxed) => {
                let tolerance = half(skews.min().unwrap_or(DEFAULT_SKEW_MAX));
                let offset = shard.ahead_of(now, started);
                let wrong = offset.filter(|offset| !offset.is_within(tolerance));
                let now = wrong.map_or(now, |offset| offset.shift(now));
                JobTime { now, tolerance: Some(tolerance) }
            }
            DecisionClock::Application => now.into(),
        }
    }
}

const fn half(skew: Millis) -> Millis {
    Millis::new(skew.get() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offset::Reading;

    const SHARD: u64 = 1_700_000_000_000;
    const SKEW: Millis = Millis::from_secs(5);

    fn time(off: i64, rule: &DecisionTime, is_known: bool) -> JobTime {
        let (clock, at) = (ShardClock::default(), Instant::now());
        if is_known {
            clock.observe(Reading::of_micros(at, at, SHARD * 1_000));
        }
        let now = Timestamp::from_millis(SHARD.saturating_add_signed(off));
        rule.of_job(&clock, now, at, [SKEW, SKEW.max(Millis::from_secs(9))].into_iter())
    }

    #[test]
    fn a_clock_beyond_half_of_the_skew_is_replaced_by_the_shards() {
        let rule = DecisionTime::default();
        rule.check();
        let day = 86_400_000;
        for off in [2_600, -2_600, 30_000, -30_000, day, -day, 365 * day] {
            let now = time(off, &rule, true).now.as_millis();
            assert!(now.abs_diff(SHARD) <= 2, "{off}: {now}");
        }
        for off in [0, 2_400, -2_400] {
            let now = time(off, &rule, true).now.as_millis();
            assert_eq!(now, SHARD.saturating_add_signed(off));
        }
    }

    #[test]
    fn a_time_that_could_not_be_compared_is_compared_when_it_is_sent() {
        let rule = DecisionTime::default();
        assert_eq!(time(30_000, &rule, true).tolerance, None, "the caller's, until it is checked");
        rule.check();
        assert_eq!(time(30_000, &rule, false).tolerance, Some(half(SKEW)));
        let mut rule = DecisionTime::default();
        rule.set_clock(DecisionClock::Shard);
        assert_eq!(time(0, &rule, false).tolerance, Some(Millis::ZERO));
    }
}
