//! Who wants to hear of every decision: metrics, logs, a terminal.

mod completions;
mod decisions;
mod degraded;
mod histogram;
mod holds;
mod rows;
mod top;
mod trials;

use std::sync::Arc;

use tollgate_core::policy::Planned;
use tollgate_core::{Charge, Policy, Readings, StoreError, Verdict};

use crate::limiter::{Completion, Decision};

pub use completions::{CompletionCounts, Completions};
pub use decisions::{ByDecider, Decider, Decisions, LimitCounts};
pub use degraded::{Degraded, DegradedCount, TOLD_APART};
pub use histogram::{DURATION_BUCKETS, Histogram, Observed};
pub(crate) use holds::is_of_holds;
pub use holds::{HoldCounts, Holds};
pub use rows::{MAX_COUNTED_LIMITS, OTHER};
pub use top::{By, TOP_PERIOD, TOP_STRIPES, TOP_SUBJECTS, Top, TopOfLimit, TopSubject};
pub use trials::TrialCounts;

/// Hears of every decision, once, before the caller does.
///
/// Observers combine: a pair of them tells both, and one behind an [`Arc`] can be read meanwhile.
pub trait Observer: Send + Sync {
    /// A request was decided on. Called on the request's way: keep it short.
    fn decided(&self, decision: &Decision);

    /// The rules that are enforced were held against a request, whose subjects these are: each with
    /// its standing, in their order. Called before [`decided`](Self::decided), unless nothing had an
    /// answer or no limit applies.
    fn judged(&self, _planned: &[Planned], _verdict: &Verdict) {}

    /// A request that was only looked at was answered, and charged what it costs, or not.
    fn completed(&self, _outcome: &Result<Completion, StoreError>) {}

    /// What opens or ends leases and reservations was asked of the store, and this is what it said.
    fn held(&self, _charges: &[Charge<'_>], _answer: &Result<Readings, StoreError>) {}

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

    fn judged(&self, planned: &[Planned], verdict: &Verdict) {
        self.0.judged(planned, verdict);
        self.1.judged(planned, verdict);
    }

    fn completed(&self, outcome: &Result<Completion, StoreError>) {
        self.0.completed(outcome);
        self.1.completed(outcome);
    }

    fn held(&self, charges: &[Charge<'_>], answer: &Result<Readings, StoreError>) {
        self.0.held(charges, answer);
        self.1.held(charges, answer);
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

    fn judged(&self, planned: &[Planned], verdict: &Verdict) {
        (**self).judged(planned, verdict);
    }

    fn completed(&self, outcome: &Result<Completion, StoreError>) {
        (**self).completed(outcome);
    }

    fn held(&self, charges: &[Charge<'_>], answer: &Result<Readings, StoreError>) {
        (**self).held(charges, answer);
    }

    fn replaced(&self, policy: &Policy) {
        (**self).replaced(policy);
    }
}
