//! What was shed, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::policy::Priority;
use tollgate_core::policy::shedding::ShedMode;

use super::decision::{ShedCause, ShedDecision};

/// Requests that were shed, by priority, cause and mode. Counting waits for nobody.
#[derive(Debug, Default)]
pub struct ShedCounts {
    enforced: Table,
    shadowed: Table,
}

type Table = [[AtomicU64; ShedCause::ALL.len()]; Priority::ALL.len()];

/// What was counted of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShedCount {
    /// How much the requests matter.
    pub priority: Priority,
    /// What there was too much of.
    pub cause: ShedCause,
    /// How many were shed.
    pub shed: u64,
    /// How many would have been, and passed.
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

    /// Every kind, also those that there were none of.
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
