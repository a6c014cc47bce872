//! What became of the charges that waited for an answer.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::StoreError;

use super::Observer;
use crate::limiter::{Completion, Decision};

/// Counts what became of the charges that waited for an answer: how much charging on completion
/// lets pass.
#[derive(Debug, Default)]
pub struct Completions {
    charged: AtomicU64,
    overrun: AtomicU64,
    lost: AtomicU64,
}

/// Requests that were charged on completion, by what became of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionCounts {
    /// Charged on every limit.
    pub charged: u64,
    /// Found some limit full, which others filled while they were in flight.
    pub overrun: u64,
    /// The store had no answer; it is not known that they were charged.
    pub lost: u64,
}

impl Completions {
    /// The counts since this was made.
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
