//! Observers of decisions, for metrics, logs and terminals.

mod ambiguous;
mod candidates;
mod completions;
mod decisions;
mod degraded;
mod histogram;
mod reservations;
mod rows;
mod top;

use std::sync::Arc;

use tollgate_core::policy::{Ambiguity, Plan, PlannedCharge};
use tollgate_core::{
    Charge, Evaluation, Policy, Readings, RequestAttributes, StoreError, Timestamp,
};

use crate::decision::{Completion, Decision};

pub use ambiguous::AmbiguousRequests;
pub use candidates::CandidateCounts;
pub use completions::{CompletionCounts, Completions};
pub use decisions::{ByDecider, Decider, Decisions, LimitCounts};
pub use degraded::{Degraded, DegradedCount, LOG_INTERVAL};
pub use histogram::{DURATION_BUCKETS, Histogram, Measuring, Observed};
pub(crate) use reservations::is_hold;
pub use reservations::{ReservationCounts, Reservations};
pub use rows::{MAX_COUNTED_LIMITS, OTHER};
pub use top::{RankBy, TOP_PERIOD, TOP_STRIPES, TOP_SUBJECTS, Top, TopOfLimit, TopSubject};

/// Receives every decision once, before the caller receives the decision.
///
/// A pair of observers is an observer that calls both. To read an observer's counts while a limiter
/// uses the observer, share the observer in an [`Arc`].
pub trait Observer: Send + Sync {
    /// Receives every decision. The request waits for this method, so the method must be fast.
    fn on_decision(&self, decision: &Decision);

    /// Receives every request and its plan, before the request is decided. The request waits for
    /// this method, so the method must be fast.
    fn on_plan(
        &self,
        _now: Timestamp,
        _policy: &Policy,
        _attributes: &RequestAttributes<'_>,
        _plan: &Plan<'_>,
    ) {
    }

    /// Receives the enforced charges of a request and their statuses, in the same order, before
    /// [`on_decision`](Self::on_decision). Not called if no limit applies, or if neither the store
    /// nor a fallback answered.
    fn evaluated(&self, _planned: &[PlannedCharge], _evaluation: &Evaluation) {}

    /// Receives the result of making a request's charges when the request is completed.
    fn on_completion(&self, _outcome: &Result<Completion, StoreError>) {}

    /// Receives the store's answer to charges that open or end permits and reservations.
    fn on_reservation(&self, _charges: &[Charge<'_>], _answer: &Result<Readings, StoreError>) {}

    /// Called for every request that is refused without a decision because the request can be read
    /// in more than one way.
    fn on_ambiguous_request(&self, _now: Timestamp, _ambiguity: Ambiguity) {}

    /// Called before the policy is replaced. Decisions that began under the old policy may still
    /// follow.
    fn on_policy_replaced(&self, _policy: &Policy) {}
}

/// An observer that does nothing.
impl Observer for () {
    fn on_decision(&self, _decision: &Decision) {}
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn on_decision(&self, decision: &Decision) {
        self.0.on_decision(decision);
        self.1.on_decision(decision);
    }

    fn on_plan(
        &self,
        now: Timestamp,
        policy: &Policy,
        attributes: &RequestAttributes<'_>,
        plan: &Plan<'_>,
    ) {
        self.0.on_plan(now, policy, attributes, plan);
        self.1.on_plan(now, policy, attributes, plan);
    }

    fn evaluated(&self, planned: &[PlannedCharge], evaluation: &Evaluation) {
        self.0.evaluated(planned, evaluation);
        self.1.evaluated(planned, evaluation);
    }

    fn on_completion(&self, outcome: &Result<Completion, StoreError>) {
        self.0.on_completion(outcome);
        self.1.on_completion(outcome);
    }

    fn on_reservation(&self, charges: &[Charge<'_>], answer: &Result<Readings, StoreError>) {
        self.0.on_reservation(charges, answer);
        self.1.on_reservation(charges, answer);
    }

    fn on_ambiguous_request(&self, now: Timestamp, ambiguity: Ambiguity) {
        self.0.on_ambiguous_request(now, ambiguity);
        self.1.on_ambiguous_request(now, ambiguity);
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

    fn on_plan(
        &self,
        now: Timestamp,
        policy: &Policy,
        attributes: &RequestAttributes<'_>,
        plan: &Plan<'_>,
    ) {
        (**self).on_plan(now, policy, attributes, plan);
    }

    fn evaluated(&self, planned: &[PlannedCharge], evaluation: &Evaluation) {
        (**self).evaluated(planned, evaluation);
    }

    fn on_completion(&self, outcome: &Result<Completion, StoreError>) {
        (**self).on_completion(outcome);
    }

    fn on_reservation(&self, charges: &[Charge<'_>], answer: &Result<Readings, StoreError>) {
        (**self).on_reservation(charges, answer);
    }

    fn on_ambiguous_request(&self, now: Timestamp, ambiguity: Ambiguity) {
        (**self).on_ambiguous_request(now, ambiguity);
    }

    fn on_policy_replaced(&self, policy: &Policy) {
        (**self).on_policy_replaced(policy);
    }
}
