//! Which history a primary's data is of, as a number that only rises.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tollgate_core::Millis;

use super::replication::Replication;

/// The last number that was given to a history: no two links of a process share one, so that a
/// history is known by its number wherever it is met.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Numbers the histories that a link's servers were found to be in, each higher than those before.
///
/// A server that is promoted or starts anew names its history anew, and one that is merely
/// connected to again does not. One that tells nothing of it may be in another one each time.
#[derive(Debug, Default)]
pub(crate) struct EpochTracker {
    last: Mutex<Last>,
    number: AtomicU64,
    /// For how long nobody was connected before the history in force, in milliseconds.
    outage: AtomicU64,
    released: AtomicU64,
    is_held: AtomicBool,
}

/// The last connection.
#[derive(Debug, Default)]
struct Last {
    /// The name of its server's history, if that was told.
    name: Option<Box<str>>,
    /// When it was left, if it was.
    left: Option<Instant>,
}

impl EpochTracker {
    /// A server is connected at `now` that told `replication` of itself: to be called before it can be
    /// used.
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

    /// The server's connection is of no further use from `now` on.
    pub(super) fn leave(&self, now: Instant) {
        self.last.lock().left = Some(now);
    }

    /// For how long nobody was connected when the history in force began.
    pub(crate) fn outage(&self) -> Millis {
        Millis::new(self.outage.load(Ordering::SeqCst))
    }

    /// The history in force; zero before the first.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::SeqCst)
    }

    /// Whether jobs have to wait for the history in force to be released.
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
