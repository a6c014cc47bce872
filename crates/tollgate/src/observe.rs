//! Who wants to hear of every decision: metrics, logs, a terminal.

mod candidates;
mod completions;
mod decisions;
mod degraded;
mod histogram;
mod reservations;
mod rows;
mod top;

use std::sync::Arc;

use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Charge, Evaluation, Policy, Readings, StoreError};

use crate::limiter::{Completion, Decision};

pub use candidates::CandidateCounts;
pub use completions::{CompletionCounts, Completions};
pub use decisions::{ByDecider, Decider, Decisions, LimitCounts};
pub use degraded::{Degraded, DegradedCount, LOG_INTERVAL};
pub use histogram::{DURATION_BUCKETS, Histogram, Observed};
pub(crate) use reservations::is_of_reservations;
pub use reservations::{ReservationCounts, Reservations};
pub use rows::{MAX_COUNTED_LIMITS, OTHER};
pub use top::{RankBy, TOP_PERIOD, TOP_STRIPES, TOP_SUBJECTS, Top, TopOfLimit, TopSubject};

/// Hears of every decision, once, before the caller does.
///
/// Observers combine: a pair of them tells both, and one behind an [`Arc`] can be read meanwhile.
pub trait Observer: Send + Sync {
    /// A request was decided on. Called on the request's way: keep it short.
    fn on_decision(&self, decision: &Decision);

    /// The rules that are enforced were held against a request, whose subjects these are: each with
    /// its status, in their order. Called before [`on_decision`](Self::on_decision), unless nothing had an
    /// answer or no limit applies.
    fn on_evaluation(&self, _planned: &[PlannedCharge], _verdict: &Evaluation) {}

    /// A request that was only looked at was answered, and charged what it costs, or not.
    fn on_completion(&self, _outcome: &Result<Completion, StoreError>) {}

    /// What opens or ends leases and reservations was asked of the store, and this is what it said.
    fn on_reservation(&self, _charges: &[Charge<'_>], _answer: &Result<Readings, StoreError>) {}

    /// Decisions are about to be made by another policy; those that began before still come.
    fn on_policy_replaced(&self, _policy: &Policy) {}
}

/// Nobody listens.
impl Observer for () {
    fn on_decision(&self, _decision: &Decision) {}
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn on_decision(&self, decision: &Decision) {
        self.0.on_decision(decision);
        self.1.on_decision(decision);
    }

    fn on_evaluation(&self, planned: &[PlannedCharge], evaluation: &Evaluation) {
        self.0.on_evaluation(planned, evaluation);
        self.1.on_evaluation(planned, evaluation);
    }

    fn on_completion(&self, outcome: &Result<Completion, StoreError>) {
        self.0.on_completion(outcome);
        self.1.on_completion(outcome);
    }

    fn on_reservation(&self, charges: &[Charge<'_>], answer: &Result<Readings, StoreError>) {
        self.0.on_reservation(charges, answer);
        self.1.on_reservation(charges, answer);
    }

    fn on_policy_replaced(&self, policy: &Policy) {
        self.0.on_policy_replaced(policy);
        self.1.on_policy_replaced(policy);
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn on_decision(&self, decision: &Decision) {
        (**self).on_decision(decision);
    }

    fn on_evaluation(&self, planned: &[PlannedCharge], evaluation: &Evaluation) {
        (**self).on_evaluation(planned, evaluation);
    }

    fn on_completion(&self, outcome: &Result<Completion, StoreError>) {
        (**self).on_completion(outcome);
    }

    fn on_reservation(&self, charges: &[Charge<'_>], answer: &Result<Readings, StoreError>) {
        (**self).on_reservation(charges, answer);
    }

    fn on_policy_replaced(&self, policy: &Policy) {
        (**self).on_policy_replaced(policy);
    }
}
