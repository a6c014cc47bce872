//! Assigns numbers to the replication epochs of a primary. A later epoch has a higher number.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tollgate_core::Millis;

use crate::connection::Replication;

/// The number that was assigned last. All links of a process share this counter, so a number
/// identifies an epoch in the whole process.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Assigns numbers to the replication epochs of a link's servers. Each number is higher than all
/// earlier numbers.
///
/// A server that is promoted or restarted reports a new replication id. A server that is only
/// reconnected reports the same id. If a server does not report its id, each connection counts as a
/// new epoch.
#[derive(Debug, Default)]
pub(crate) struct EpochTracker {
    last: Mutex<Last>,
    number: AtomicU64,
    /// The time without a connection before the current epoch began, in milliseconds.
    outage: AtomicU64,
    released: AtomicU64,
    is_held: AtomicBool,
}

/// The replication epoch of the last connection.
#[derive(Debug, Default)]
struct Last {
    /// The replication id that the connection's server reported. `None` if the server did not
    /// report the id.
    name: Option<Box<str>>,
    /// The time at which the connection was lost, if it was lost.
    left: Option<Instant>,
}

impl EpochTracker {
    /// Records that a server with the report `replication` was connected at `now`. Call this
    /// function before the connection is used.
    pub(super) fn begin(&self, replication: Option<&Replication>, now: Instant) {
        let mut last = self.last.lock();
        let name = replication.map(|replication| replication.history.clone());
        let left = last.left.take();
        if name.is_none() || last.name != name {
            last.name = name;
            let outage = left.map_or(Duration::ZERO, |left| now.saturating_duration_since(left));
            let outage = u64::try_from(outage.as_millis()).unwrap_or(u64::MAX);
            self.outage.store(outage, Ordering::SeqCst);
            self.number.store(LAST.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        }
    }

    /// Records that the connection was lost at `now`.
    pub(super) fn leave(&self, now: Instant) {
        self.last.lock().left = Some(now);
    }

    /// Returns the time without a connection before the current epoch began.
    pub(crate) fn outage(&self) -> Millis {
        Millis::new(self.outage.load(Ordering::SeqCst))
    }

    /// Returns the number of the current epoch, or zero before the first epoch.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::SeqCst)
    }

    /// Returns whether charges are rejected now, because the current epoch has not been released.
    pub(crate) fn holds(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
            && self.number() != self.released.load(Ordering::SeqCst)
    }

    pub(crate) fn pause_until_replayed(&self) {
        self.is_held.store(true, Ordering::Relaxed);
    }

    pub(crate) fn release(&self, history: u64) {
        self.released.fetch_max(history, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_goes_on_over_connections_and_ends_with_a_promotion() {
        let [numbers, others] = [(); 2].map(|()| EpochTracker::default());
        assert_eq!(numbers.number(), 0);
        let begun = |replication: Option<&str>| {
            let replication = replication.map(|name| Replication::leading(name, 7, None));
            numbers.begin(replication.as_ref(), Instant::now());
            numbers.number()
        };
        let first = begun(Some("x"));
        assert!(first > 0);
        assert_eq!(begun(Some("x")), first);
        others.begin(Some(&Replication::leading("x", 7, None)), Instant::now());
        assert_ne!(others.number(), first, "another link's");
        let later = [begun(Some("y")), begun(None), begun(None), begun(Some("y"))];
        assert!(first < later[0] && later.is_sorted_by(|one, next| one < next), "{later:?}");
    }

    #[test]
    fn what_is_held_waits_for_the_last_history() {
        let numbers = EpochTracker::default();
        let begin = |name| {
            numbers.begin(Some(&Replication::leading(name, 7, None)), Instant::now());
            numbers.number()
        };
        let first = begin("x");
        assert!(!numbers.holds(), "nobody asked for it");
        numbers.pause_until_replayed();
        assert!(numbers.holds());
        numbers.release(first);
        assert!(!numbers.holds());
        let second = begin("y");
        numbers.release(first);
        assert!(numbers.holds());
        numbers.release(second);
        assert!(!numbers.holds());
    }

    #[test]
    fn an_outage_is_what_lies_between_two_histories() {
        let (numbers, start) = (EpochTracker::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let begun = |name, seconds| {
            numbers.begin(Some(&Replication::leading(name, 7, None)), at(seconds));
            numbers.outage()
        };
        assert_eq!(begun("x", 1), Millis::ZERO);
        numbers.leave(at(2));
        assert_eq!(begun("x", 40), Millis::ZERO, "the same history");
        numbers.leave(at(50));
        assert_eq!(begun("y", 70), Millis::from_secs(20));
    }
}
