//! Who wants to hear of every decision: metrics, logs, a terminal.

mod completions;
mod decisions;
mod degraded;

use std::sync::Arc;

use tollgate_core::{Policy, StoreError};

use crate::limiter::{Completion, Decision};

pub use completions::{CompletionCounts, Completions};
pub use decisions::{ByDecider, Decider, Decisions, LimitCounts, MAX_COUNTED_LIMITS, OTHER};
pub use degraded::{Degraded, DegradedCount, TOLD_APART};

/// Hears of every decision, once, before the caller does.
///
/// Observers combine: a pair of them tells both, and one behind an [`Arc`] can be read meanwhile.
pub trait Observer: Send + Sync {
    /// A request was decided on. Called on the request's way: keep it short.
    fn decided(&self, decision: &Decision);

    /// A request that was only looked at was answered, and charged what it costs, or not.
    fn completed(&self, _outcome: &Result<Completion, StoreError>) {}

    /// Decisions are about to be made by another policy; those that began before still come.
    fn replaced(&self, _policy: &Policy) {}
}

/// Nobody listens.
impl Observer for () {
    fn decided(&self, _decision: &Decision) {}
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn decided(&self, decision: &Decision) {
        self.0.decided(decision);
        self.1.decided(decision);
    }

    fn completed(&self, outcome: &Result<Completion, StoreError>) {
        self.0.completed(outcome);
        self.1.completed(outcome);
    }

    fn replaced(&self, policy: &Policy) {
        self.0.replaced(policy);
        self.1.replaced(policy);
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn decided(&self, decision: &Decision) {
        (**self).decided(decision);
    }

    fn completed(&self, outcome: &Result<Completion, StoreError>) {
        (**self).completed(outcome);
    }

    fn replaced(&self, policy: &Policy) {
        (**self).replaced(policy);
    }
}
