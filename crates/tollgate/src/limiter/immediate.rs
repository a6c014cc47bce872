//! Decisions without a future, which reuse the memory of earlier decisions.

use tollgate_core::charge::ChargeId;
use tollgate_core::policy::{HeaderProfile, PlainPlan, PlannedCharge};
use tollgate_core::{
    Admission, DecisionSource, Evaluation, Reading, RequestAttributes, StoreError, Timestamp,
};

use super::Limiter;
use crate::headers::{self, Fields};
use crate::receipt::{Purpose, Receipt, new_charge_id};
use crate::store::ImmediateStore;

/// The memory that a call of [`Limiter::check_now`] uses, and that the next call uses again.
#[derive(Debug, Default)]
pub struct Workspace {
    plan: PlainPlan,
    answer: Answer,
}

/// The answer to the charges of one request. The memory of an answer is reused for the next answer.
#[derive(Debug, Default)]
pub struct Answer {
    id: ChargeId,
    readings: Vec<Reading>,
    evaluation: Evaluation,
    source: DecisionSource,
}

/// A decision of [`Limiter::check_now`].
#[derive(Debug)]
#[must_use = "a decision that nobody reads limits nothing"]
pub struct ImmediateDecision<'w> {
    planned: &'w [PlannedCharge],
    answer: &'w Answer,
}

impl<S: ImmediateStore> Limiter<S> {
    /// Makes the same decision as [`check`](Self::check) without a future, in the memory of
    /// `workspace`.
    ///
    /// Returns `None` and charges nothing if the decision needs more than one store call, or
    /// something that only [`check`](Self::check) does. Call [`check`](Self::check) in this case.
    /// The causes are: a rule in shadow mode or with charges on completion, a limit with a
    /// candidate, a limit that is not enforced for every subject, an override, an ambiguous
    /// request, a policy that charges all matching rules, an observer or a tracer of the limiter,
    /// and an unpaid cost of any subject (see [`MAX_UNPAID`](super::MAX_UNPAID)).
    ///
    /// Allocates nothing if the workspace was used before for a request with as many limits, and if
    /// the store already has state of the subject.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::headers::HeaderLines;
    /// use tollgate::limiter::{Limiter, Workspace};
    /// use tollgate::model::{Policy, RequestAttributes};
    /// use tollgate::store::Memory;
    ///
    /// let limiter = Limiter::new(Policy::default(), Memory::default());
    /// let (mut workspace, mut lines) = (Workspace::default(), HeaderLines::default());
    /// let request = RequestAttributes {
    ///     method: "GET",
    ///     path: "/",
    ///     query: None,
    ///     host: None,
    ///     peer: None,
    ///     headers: &(),
    /// };
    /// let policy = limiter.policy();
    /// let decision = limiter.check_now(&policy, &request, &mut workspace).unwrap().unwrap();
    /// decision.write_headers(&policy.answers().headers, &mut lines);
    /// assert!(decision.is_admitted());
    /// ```
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. No fallback decides in its place.
    pub fn check_now<'w>(
        &self,
        policy: &tollgate_core::Policy,
        attributes: &RequestAttributes<'_>,
        workspace: &'w mut Workspace,
    ) -> Option<Result<ImmediateDecision<'w>, StoreError>> {
        let Workspace { plan, answer } = workspace;
        if !self.is_immediate() || !policy.plan_plain(attributes, &self.key, plan) {
            return None;
        }
        let planned = plan.charges();
        let charged = self.charge_into(self.now(), planned, answer);
        Some(charged.map(|()| ImmediateDecision { planned, answer }))
    }

    /// Charges all of `planned` at `now`, or nothing. `planned` must come from
    /// [`plan_plain`](tollgate_core::Policy::plan_plain), and must not contain a charge that is
    /// reserved or made on completion.
    ///
    /// Returns `None` and charges nothing if the limiter has an override, an observer, a tracer or
    /// an unpaid cost. Call [`decide`](Self::decide) in this case.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. No fallback decides in its place.
    pub fn charge_now(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        answer: &mut Answer,
    ) -> Option<Result<(), StoreError>> {
        self.is_immediate().then(|| self.charge_into(now, planned, answer))
    }

    /// Returns whether the limiter has no observer, no override, no tracer and no unpaid cost.
    fn is_immediate(&self) -> bool {
        !self.is_observed && self.has_only_policy()
    }

    fn charge_into(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        answer: &mut Answer,
    ) -> Result<(), StoreError> {
        answer.id = new_charge_id();
        answer.source = self.store.charge_into(now, answer.id, planned, &mut answer.readings)?;
        self.evaluate_into(now, planned, &answer.readings, &mut answer.evaluation);
        Ok(())
    }
}

impl Answer {
    /// Returns the status of every limit that took part in the decision.
    #[must_use]
    pub const fn evaluation(&self) -> &Evaluation {
        &self.evaluation
    }

    /// Returns the component that decided: the store, one of its overflow counters, or the deny
    /// cache.
    #[must_use]
    pub const fn source(&self) -> DecisionSource {
        self.source
    }

    /// Returns the receipt of the charges `planned`, or `None` if nothing was charged. `planned`
    /// must be the charges that this answer is for.
    #[must_use]
    pub fn receipt(&self, planned: &[PlannedCharge]) -> Option<Receipt> {
        if self.readings.iter().any(|reading| reading.admission != Admission::Now) {
            return None;
        }
        let positions = self.readings.iter().map(|reading| reading.position);
        let charged = planned.iter().cloned().zip(positions);
        let mut receipt = Receipt::new(self.id, Purpose::Charge, charged);
        receipt.set_charged_at(self.evaluation.now);
        (!receipt.is_empty()).then_some(receipt)
    }
}

impl ImmediateDecision<'_> {
    /// Returns whether the request is admitted.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.answer.evaluation.is_admitted()
    }

    /// Returns the status of every limit that took part in the decision.
    #[must_use]
    pub const fn evaluation(&self) -> &Evaluation {
        &self.answer.evaluation
    }

    /// Returns the component that decided: the store, one of its overflow counters, or the deny
    /// cache.
    #[must_use]
    pub const fn source(&self) -> DecisionSource {
        self.answer.source
    }

    /// Returns the receipt of the charges, or `None` if nothing was charged. A request that takes a
    /// permit of a concurrency limit must [refund](Limiter::refund) this receipt when the request
    /// ends.
    #[must_use]
    pub fn receipt(&self) -> Option<Receipt> {
        self.answer.receipt(self.planned)
    }

    /// Writes the header fields of the response for every profile of `profiles`.
    pub fn write_headers(&self, profiles: &[HeaderProfile], fields: &mut impl Fields) {
        headers::write(profiles, self.evaluation(), fields);
    }
}
