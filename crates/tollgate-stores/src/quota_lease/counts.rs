//! Counts of leases, and of the store calls that the leases saved and caused.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of leases since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseCounts {
    /// The number of calls that were decided locally, without a store call.
    pub decided: u64,
    /// The number of leases that were taken, each with one store call.
    pub taken: u64,
    /// The number of units in the leases that were taken.
    pub units_taken: u64,
    /// The number of unused units that were refunded.
    pub units_returned: u64,
    /// Units that could not be refunded, and units of leases without an answer of the store, which
    /// may have counted the lease. All of these units stay used until their windows end.
    pub units_lost: u64,
}

/// The counters behind [`LeaseCounts`], which are updated while the store is in use.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) decided: AtomicU64,
    pub(super) taken: AtomicU64,
    pub(super) units_taken: AtomicU64,
    pub(super) units_returned: AtomicU64,
    pub(super) units_lost: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> LeaseCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LeaseCounts {
            decided: count(&self.decided),
            taken: count(&self.taken),
            units_taken: count(&self.units_taken),
            units_returned: count(&self.units_returned),
            units_lost: count(&self.units_lost),
        }
    }
}

/// Adds to a counter that no decision depends on.
pub(super) fn add(counter: &AtomicU64, units: u64) {
    counter.fetch_add(units, Ordering::Relaxed);
}
