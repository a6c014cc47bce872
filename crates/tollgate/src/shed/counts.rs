//! Counts of requests that were shed.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::policy::Priority;
use tollgate_core::policy::shedding::ShedMode;

use super::decision::{ShedCause, ShedDecision};

/// Counts of requests that were shed, by priority, cause and mode. Counting takes no lock.
#[derive(Debug, Default)]
pub struct ShedCounts {
    enforced: Table,
    shadowed: Table,
}

type Table = [[AtomicU64; ShedCause::ALL.len()]; Priority::ALL.len()];

/// The numbers of requests with one priority that were shed for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShedCount {
    /// The priority of the requests.
    pub priority: Priority,
    /// The kind of load because of which the requests were shed.
    pub cause: ShedCause,
    /// The number of requests that were shed.
    pub shed: u64,
    /// The number of requests that would have been shed, and were admitted because load shedding is
    /// in shadow mode.
    pub shadowed: u64,
}

impl ShedCounts {
    pub(crate) fn count(&self, shed: &ShedDecision, mode: ShedMode) {
        let table = match mode {
            ShedMode::Enforce => &self.enforced,
            ShedMode::Shadow => &self.shadowed,
            ShedMode::Off => return,
        };
        cell(table, shed.priority, shed.cause).fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts of every priority and cause, including zeros.
    pub fn read(&self) -> impl Iterator<Item = ShedCount> {
        let kinds = Priority::ALL.into_iter();
        let kinds = kinds.flat_map(|priority| ShedCause::ALL.map(|cause| (priority, cause)));
        kinds.map(|(priority, cause)| {
            let read = |table| cell(table, priority, cause).load(Ordering::Relaxed);
            let (shed, shadowed) = (read(&self.enforced), read(&self.shadowed));
            ShedCount { priority, cause, shed, shadowed }
        })
    }
}

fn cell(table: &Table, priority: Priority, cause: ShedCause) -> &AtomicU64 {
    &table[priority as usize][cause as usize]
}
