//! What leases spared the store, and what they cost it.

use std::sync::atomic::{AtomicU64, Ordering};

/// What was done with leases since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseCounts {
    /// Calls that were decided here, without asking the store.
    pub decided: u64,
    /// Leases that were taken: a call of the store each.
    pub taken: u64,
    /// Units of them.
    pub units_taken: u64,
    /// Units that were given back unused.
    pub units_given_back: u64,
    /// Units that could not be given back: they stay used until their windows are over.
    pub units_lost: u64,
}

/// The same, while it is counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) decided: AtomicU64,
    pub(super) taken: AtomicU64,
    pub(super) units_taken: AtomicU64,
    pub(super) units_given_back: AtomicU64,
    pub(super) units_lost: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> LeaseCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LeaseCounts {
            decided: count(&self.decided),
            taken: count(&self.taken),
            units_taken: count(&self.units_taken),
            units_given_back: count(&self.units_given_back),
            units_lost: count(&self.units_lost),
        }
    }
}

/// Adds to a counter that nothing is decided by.
pub(super) fn add(counter: &AtomicU64, units: u64) {
    counter.fetch_add(units, Ordering::Relaxed);
}
