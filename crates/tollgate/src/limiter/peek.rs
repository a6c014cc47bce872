//! Peeks, which return the status of limits without charging them.

use std::future::Future;

use tollgate_core::charge::Operation;
use tollgate_core::policy::{PlannedCharge, Policy, Rule};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Evaluation, RequestAttributes, Store, StoreError, Timestamp};

use super::Limiter;
use super::decide::Split;
use super::evaluate::{Resolved, blocked_status};
use crate::decision::{AppliedOverride, ChargePositions, Evaluated, PlanPosition};
use crate::overrides::ResolvedOverride;

/// The decision that a request would receive now.
#[derive(Clone, Debug)]
pub struct Peek {
    /// The status of every limit that would take part in the decision.
    pub evaluation: Evaluation,
    /// The component that returned the statuses: the store, an overflow counter, the deny cache or
    /// a fallback.
    pub source: DecisionSource,
    /// The overrides that replace limits, in the order of the charges.
    pub overrides: Vec<AppliedOverride>,
    /// The mapping from the statuses to the charges.
    positions: ChargePositions,
}

impl Peek {
    /// Returns the index in [`evaluation`](Self::evaluation) of the status of the charge at `index`
    /// of the planned charges. Returns `None` if the limit of the charge would not take part in the
    /// decision.
    #[must_use]
    pub fn status_index(&self, index: usize) -> Option<usize> {
        match self.positions.find(PlanPosition::Enforced(index))? {
            Evaluated::Enforced(index) => (index < self.evaluation.statuses.len()).then_some(index),
            Evaluated::Counted(_) => None,
        }
    }
}

impl<S: Store> Limiter<S> {
    /// Returns the decision that a request with the charges `planned` would receive at `now`.
    /// Charges nothing. Leaves out limits that are not enforced for their subjects.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub async fn peek_at(
        &self,
        now: Timestamp,
        planned: Vec<PlannedCharge>,
    ) -> Result<Peek, StoreError> {
        let Split { enforced, counted, mut positions } = self.split(now, planned, 0);
        let (charges, mut overrides) =
            self.apply_overrides(now, enforced, Evaluated::Enforced, &mut positions);
        let (_, more) = self.apply_overrides(now, counted, Evaluated::Counted, &mut positions);
        overrides.extend(more);
        overrides.sort_by_key(|applied| match applied.position {
            PlanPosition::Enforced(index) | PlanPosition::Shadowed(index) => index,
        });
        let (evaluation, source) = match charges {
            Resolved::Charges(planned) => self.peek_charges(now, &planned).await?,
            Resolved::Blocked(_, statuses) => {
                (Evaluation { now, statuses }, DecisionSource::DenyCache)
            }
        };
        Ok(Peek { evaluation, source, overrides, positions })
    }

    /// Returns the status of every limit of `planned` at `now`, and the component that returned the
    /// statuses, such as the store or a fallback. Charges nothing. Includes limits that are not
    /// enforced for their subjects. If an override blocks some limits, includes the other limits
    /// too. Leaves out limits that an override lifts.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub async fn peek_planned(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
    ) -> Result<(Evaluation, DecisionSource), StoreError> {
        if self.overrides.is_empty() {
            return self.peek_charges(now, planned).await;
        }
        let (mut charges, mut blocked) = (Vec::new(), Vec::new());
        for one in planned {
            let resolved = self.overrides.resolve(&one.limit, &one.subject, &self.key, now);
            match resolved.map(|(resolved, _)| resolved) {
                Some(ResolvedOverride::Unlimited) => {}
                Some(ResolvedOverride::Blocked(until)) => {
                    let index = charges.len() + blocked.len();
                    blocked.push((index, blocked_status(now, until, one)));
                }
                Some(ResolvedOverride::Limit(limit)) => {
                    charges.push(PlannedCharge { limit, ..one.clone() });
                }
                Some(ResolvedOverride::Counted) | None => charges.push(one.clone()),
            }
        }
        let (mut evaluation, mut source) = self.peek_charges(now, &charges).await?;
        if charges.is_empty() && !blocked.is_empty() {
            source = DecisionSource::DenyCache;
        }
        for (index, status) in blocked {
            let statuses = &mut evaluation.statuses;
            statuses.insert(index.min(statuses.len()), status);
        }
        Ok((evaluation, source))
    }

    /// Returns the status of every visible limit that is enforced for the client of a request,
    /// including the limits of rules that match only other paths. Charges nothing.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer.
    pub fn statuses(
        &self,
        attributes: &RequestAttributes<'_>,
    ) -> impl Future<Output = Result<Evaluation, StoreError>> + Send + use<'_, S> {
        let now = self.now();
        let planned = self.status_plan(now, &self.policy.load(), attributes);
        async move { self.peek_planned(now, &planned).await.map(|(evaluation, _)| evaluation) }
    }

    /// Returns a planned charge for each visible limit that is enforced for the client of a
    /// request, including the limits of rules that match only other paths.
    pub(super) fn status_plan(
        &self,
        now: Timestamp,
        policy: &Policy,
        attributes: &RequestAttributes<'_>,
    ) -> Vec<PlannedCharge> {
        let planned = if self.overrides.is_empty() {
            policy.status_plan(attributes, &self.key)
        } else {
            let switch = |rule: &Rule| self.overrides.switched(rule, now);
            policy.status_plan_switched(attributes, &self.key, switch)
        };
        self.split(now, planned, 0).enforced
    }

    async fn peek_charges(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
    ) -> Result<(Evaluation, DecisionSource), StoreError> {
        let readings =
            self.apply(now, planned, |planned| Operation::Peek { cost: planned.cost }).await?;
        Ok((self.evaluate_readings(now, planned, &readings), readings.source()))
    }
}
