//! Counts of charges on completion.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::StoreError;

use super::Observer;
use crate::decision::{Completion, Decision};

/// Counts the results of charges on completion. [`CompletionCounts::overrun`] shows how many
/// requests were admitted above a limit.
#[derive(Debug, Default)]
pub struct Completions {
    charged: AtomicU64,
    overrun: AtomicU64,
    lost: AtomicU64,
}

/// The numbers of charges on completion, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionCounts {
    /// Charges on completion that charged every limit.
    pub charged: u64,
    /// Charges on completion for which other requests had filled a limit while the request was in
    /// flight.
    pub overrun: u64,
    /// Charges on completion for which the store did not answer. The store may have made such a
    /// charge or not.
    pub lost: u64,
}

impl Completions {
    /// Returns the counts since this observer was created.
    #[must_use]
    pub fn counts(&self) -> CompletionCounts {
        CompletionCounts {
            charged: self.charged.load(Ordering::Relaxed),
            overrun: self.overrun.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }
}

impl Observer for Completions {
    fn on_decision(&self, _decision: &Decision) {}

    fn on_completion(&self, outcome: &Result<Completion, StoreError>) {
        let count = match outcome {
            Ok(Completion::Charged) => &self.charged,
            Ok(Completion::Overrun) => &self.overrun,
            Err(_) => &self.lost,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
