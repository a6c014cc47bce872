//! The passive health of one address: the number of its failures in a row, and the time until which
//! it receives no requests.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The number of failures in a row after which an address is set aside. An address that is set
/// aside receives no requests for a while.
pub(crate) const FAILURES: u32 = 3;
/// The time for which an address is set aside the first time. Each further pause is twice as long
/// as the pause before.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest time for which an address is set aside.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The passive health of an address. "Passive" means that the proxy observes the responses to its
/// requests, and sends no probes.
#[derive(Debug)]
pub(crate) struct Health {
    began: Instant,
    /// The end of the last pause, in milliseconds since `began`. 0 if the address was not set aside
    /// since it last responded.
    until: AtomicU64,
    state: Mutex<State>,
    /// 1 if the address failed since it last responded, otherwise 0. With 0, a response need not
    /// lock `state`.
    is_marked: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    pauses: u32,
}

impl Health {
    pub(crate) fn new(now: Instant) -> Self {
        let (until, is_marked) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { began: now, until, state: Mutex::default(), is_marked }
    }

    /// Returns whether the address may receive requests at `now`: either it is not set aside at
    /// all, or the pause for which it was set aside has ended.
    pub(crate) fn is_in_use(&self, now: Instant) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until == 0 || self.millis(now) >= until
    }

    /// Records a response of the address, and ends its pause. Returns whether the address was set
    /// aside at any time since its previous response.
    pub(crate) fn succeed(&self) -> bool {
        if self.is_marked.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.is_marked.store(0, Ordering::Relaxed);
        self.until.store(0, Ordering::Relaxed);
        let before = std::mem::take(&mut *self.state.lock());
        before.pauses > 0
    }

    /// Records a failure of the address at `now`. If this failure sets the address aside, returns
    /// the length of the pause, otherwise `None`. If `may_pause` is false, the address is not set
    /// aside.
    pub(crate) fn fail(&self, now: Instant, may_pause: bool) -> Option<Duration> {
        self.is_marked.store(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.failures = state.failures.saturating_add(1);
        // Requests that were in flight when the pause began do not make the pause longer.
        if state.failures < FAILURES || !may_pause || !self.is_in_use(now) {
            return None;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << state.pauses.min(16)).min(LONGEST_PAUSE);
        state.pauses = state.pauses.saturating_add(1);
        // After the pause, one more failure sets the address aside again.
        state.failures = FAILURES - 1;
        self.until.store(self.millis(now + pause).max(1), Ordering::Relaxed);
        Some(pause)
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_set_aside_for_a_growing_and_bounded_time() {
        let mut now = Instant::now();
        let health = Health::new(now);
        assert_eq!([(); 2].map(|()| health.fail(now, true)), [None; 2]);
        assert!(health.is_in_use(now));
        let mut pauses = Vec::new();
        for _ in 0..7 {
            let pause = health.fail(now, true).expect("a pause");
            assert!(!health.is_in_use(now));
            assert_eq!(health.fail(now, true), None, "a request in flight does not extend it");
            pauses.push(pause.as_secs());
            now += pause;
            assert!(health.is_in_use(now));
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert!(health.succeed(), "it was set aside before");
        assert!(!health.succeed());
        assert_eq!(health.fail(now, true), None);
    }

    #[test]
    fn the_last_address_stays_in_use() {
        let now = Instant::now();
        let health = Health::new(now);
        for _ in 0..10 {
            assert_eq!(health.fail(now, false), None);
        }
        assert!(health.is_in_use(now));
        assert_eq!(health.fail(now, true), Some(FIRST_PAUSE));
    }

    #[test]
    fn a_success_between_failures_counts_them_from_the_start() {
        let now = Instant::now();
        let health = Health::new(now);
        for _ in 0..10 {
            assert_eq!([(); 2].map(|()| health.fail(now, true)), [None; 2]);
            assert!(!health.succeed());
        }
        assert!(health.is_in_use(now));
    }
}
