//! Which history a primary's data is of, as a number that only rises.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::replication::Replication;

/// Numbers the histories that a link's servers were found to be in, from 1 on.
///
/// A server that is promoted or starts anew names its history anew, and one that is merely
/// connected to again does not. One that tells nothing of it may be in another one each time.
#[derive(Debug, Default)]
pub(crate) struct HistoryNumbers {
    name: Mutex<Option<Box<str>>>,
    number: AtomicU64,
    released: AtomicU64,
    is_held: AtomicBool,
}

impl HistoryNumbers {
    /// A server is connected that told `told` of itself: to be called before it can be used.
    pub(super) fn begin(&self, told: Option<&Replication>) {
        let mut name = self.name.lock();
        let now = told.map(|told| told.history.clone());
        if now.is_none() || *name != now {
            *name = now;
            self.number.fetch_add(1, Ordering::SeqCst);
        }
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

    pub(crate) fn hold_until_released(&self) {
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
        let numbers = HistoryNumbers::default();
        let begun = |told: Option<&str>| {
            numbers.begin(told.map(|name| Replication::leading(name, 7, None)).as_ref());
            numbers.number()
        };
        assert_eq!([begun(Some("x")), begun(Some("x")), begun(Some("y"))], [1, 1, 2]);
        assert_eq!([begun(None), begun(None), begun(Some("y"))], [3, 4, 5]);
    }

    #[test]
    fn what_is_held_waits_for_the_last_history() {
        let numbers = HistoryNumbers::default();
        let begin = |name| numbers.begin(Some(&Replication::leading(name, 7, None)));
        begin("x");
        assert!(!numbers.holds(), "nobody asked for it");
        numbers.hold_until_released();
        assert!(numbers.holds());
        numbers.release(1);
        assert!(!numbers.holds());
        begin("y");
        numbers.release(1);
        assert!(numbers.holds());
        numbers.release(2);
        assert!(!numbers.holds());
    }
}
