//! Charges the descriptors of a request, all together or each separately.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use tollgate::decision::{CandidateOutcome, Decision, PlanPosition};
use tollgate::model::policy::OnFailure;
use tollgate::model::policy::descriptors::{
    Counting, DescriptorCharges, DescriptorOutcome, DescriptorPlan, Hits, NodeMode,
    PlannedDescriptor, QuotaGroup,
};
use tollgate::model::{Evaluation, Store, StoreError, Timestamp};
use tollgate::{DecisionRequest, DecisionSource, Limiter, Receipt, Revision};

use super::request::{ParsedRequest, Size};

/// The descriptors of a request that are charged together: either all of them or none.
pub(super) struct Part {
    mode: Mode,
    charges: DescriptorCharges,
    action: PartAction,
}

/// The effect on a request if a [part](Part) of the request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The request is refused.
    Enforced,
    /// The quota group of the part is over its limit. The request is refused if all quota groups
    /// are over their limits.
    Quota(QuotaGroup),
    /// The refusal is only counted, and has no effect on the request.
    Shadow,
}

/// Whether a [part](Part) is charged, or is refused without a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartAction {
    Charge,
    /// The part is refused regardless of the state of its limits. The limits are only read, to
    /// report their statuses.
    Refuse,
}

/// The result of charging a [part](Part) of a request.
pub(super) struct PartResult {
    pub(super) mode: Mode,
    /// One entry for each descriptor of the request: the index of the descriptor's status in
    /// `evaluation`, or `None` if the descriptor has no status.
    pub(super) of: Vec<Option<usize>>,
    /// The statuses of the limits. Empty if neither the store nor a fallback answered.
    pub(super) evaluation: Evaluation,
    pub(super) outcome: PartOutcome,
    /// The decision on the part, or `None` if the limiter made no decision or has reported it.
    pub(super) unreported: Option<Unreported>,
    receipt: Option<Receipt>,
}

/// A decision on a [part](Part) that the limiter has not reported to its observer.
pub(super) struct Unreported {
    pub(super) source: DecisionSource,
    /// The statuses of limits that are not enforced for their subjects.
    pub(super) counted: Option<Evaluation>,
    pub(super) candidates: Vec<CandidateOutcome>,
}

/// Whether a [part](Part) of a request was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartOutcome {
    Passed,
    Refused,
    /// The store did not answer, and `on_failure` of the domain is `deny`.
    Failed(StoreError),
}

/// Charges the descriptors of `parsed` at the time `now`, according to `plan`, which was made with
/// `policy`. Returns one result for each part of the request. Returns no result if the policy does
/// not have the domain of the request.
pub(super) async fn charge<S: Store + 'static>(
    limiter: &Arc<Limiter<S>>,
    policy: &Arc<Revision>,
    now: Timestamp,
    plan: &DescriptorPlan<'_>,
    parsed: &ParsedRequest<'_>,
) -> Vec<PartResult> {
    let Some(domain) = plan.domain else { return Vec::new() };
    let parts = parts(domain.counting, plan, parsed);
    let (on_failure, is_part) = (domain.on_failure, parts.len() > 1);
    let charger = Charger { limiter, policy, now, on_failure, is_part };
    match domain.counting {
        Counting::Each => charger.all(parts).await,
        Counting::Atomic => charger.together(parts).await,
    }
}

fn parts(counting: Counting, plan: &DescriptorPlan<'_>, parsed: &ParsedRequest<'_>) -> Vec<Part> {
    let counts = |index: &usize| {
        matches!(
            plan.descriptors[*index].outcome,
            DescriptorOutcome::Limited(_) | DescriptorOutcome::Blocked
        )
    };
    let mut parts: Vec<Part> = Vec::new();
    for index in (0..plan.descriptors.len()).filter(counts) {
        let own = &plan.descriptors[index];
        let mode = Mode::of(own);
        if counting == Counting::Atomic && parts.iter().any(|part| part.mode == mode) {
            continue;
        }
        let charges = plan.charges(|one| match counting {
            Counting::Each => std::ptr::eq(one, own),
            Counting::Atomic => Mode::of(one) == mode,
        });
        parts.push(Part { mode, charges, action: PartAction::Charge });
    }
    for index in (0..plan.descriptors.len()).filter(|index| exceeds_capacity(plan, parsed, *index))
    {
        let mode = Mode::of(&plan.descriptors[index]);
        let earlier = plan.descriptors[..index].iter().enumerate();
        let index = match counting {
            Counting::Atomic => parts.iter().position(|part| part.mode == mode),
            Counting::Each => Some(earlier.filter(|(other, _)| counts(other)).count()),
        };
        if let Some(part) = index.and_then(|index| parts.get_mut(index)) {
            part.action = PartAction::Refuse;
        }
    }
    parts
}

/// Returns whether the descriptor at `index` requests a charge that no limit can ever admit,
/// because the descriptor is blocked or its number of hits is larger than any limit can count.
fn exceeds_capacity(plan: &DescriptorPlan<'_>, parsed: &ParsedRequest<'_>, index: usize) -> bool {
    matches!(parsed.hits(index), Hits::Charge(_))
        && match plan.descriptors[index].outcome {
            DescriptorOutcome::Blocked => true,
            DescriptorOutcome::Limited(_) => parsed.size(index) == Size::Excessive,
            DescriptorOutcome::Unmatched
            | DescriptorOutcome::Unlimited
            | DescriptorOutcome::Replaced => false,
        }
}

impl Mode {
    pub(super) const fn of(descriptor: &PlannedDescriptor<'_>) -> Self {
        match (descriptor.mode, descriptor.group) {
            (NodeMode::Shadow, _) => Self::Shadow,
            (NodeMode::Quota, Some(group)) => Self::Quota(group),
            (NodeMode::Quota, None) | (NodeMode::Enforce, _) => Self::Enforced,
        }
    }
}

/// Charges the parts of one request.
struct Charger<'l, S> {
    limiter: &'l Arc<Limiter<S>>,
    policy: &'l Arc<Revision>,
    now: Timestamp,
    on_failure: OnFailure,
    /// Whether the request has several parts, so the caller reports one decision on all of them.
    is_part: bool,
}

impl<S: Store + 'static> Charger<'_, S> {
    /// Charges every part separately, so the refusal of one part has no effect on the other parts.
    async fn all(&self, parts: Vec<Part>) -> Vec<PartResult> {
        // Usually there is only one part, so no results have to be combined.
        match <[Part; 1]>::try_from(parts) {
            Ok([only]) => vec![self.one(only).await],
            Err(parts) => join_all(parts.into_iter().map(|part| self.one(part))).await,
        }
    }

    /// Charges the parts of a domain that counts all descriptors in one charge. There is at most
    /// one enforced part. If the request is refused, refunds the quota groups that were charged.
    /// The charges of parts in shadow mode stay.
    async fn together(&self, parts: Vec<Part>) -> Vec<PartResult> {
        let is_quota = |part: &Part| matches!(part.mode, Mode::Quota(_));
        if !parts.iter().any(is_quota) {
            return self.all(parts).await;
        }
        let (quotas, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_quota);
        // Boxed, because quotas are rare, and every call would have a larger future.
        Box::pin(self.with_quotas(quotas, others)).await
    }

    /// Charges the quota groups `quotas` and the parts `others`.
    ///
    /// Quota groups are alternatives, and one charge cannot express alternatives. Therefore each
    /// group is first charged separately. The charges of the groups are refunded if the request is
    /// then refused, or if the store did not answer.
    async fn with_quotas(&self, quotas: Vec<Part>, others: Vec<Part>) -> Vec<PartResult> {
        let (enforced, shadows): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|part| part.mode == Mode::Enforced);
        let (mut quotas, mut results) = join(self.all(quotas), self.all(shadows)).await;
        let has_room = quotas.iter().any(|quota| quota.outcome == PartOutcome::Passed);
        let failed = quotas.iter().any(|quota| matches!(quota.outcome, PartOutcome::Failed(_)));
        let mut passes = !failed;
        for mut part in enforced {
            if failed || !has_room {
                part.action = PartAction::Refuse;
            }
            let enforced = self.one(part).await;
            passes &= enforced.outcome == PartOutcome::Passed;
            results.push(enforced);
        }
        if !passes {
            join_all(quotas.iter_mut().map(|quota| self.refund_part(quota))).await;
        }
        results.extend(quotas);
        results
    }

    async fn one(&self, part: Part) -> PartResult {
        if part.action == PartAction::Refuse {
            // Boxed, because such a part is rare, and every call would have a larger future.
            return Box::pin(self.refuse(part)).await;
        }
        let Part { mode, charges: DescriptorCharges { planned, of }, .. } = part;
        if planned.is_empty() {
            let (evaluation, outcome) =
                (Evaluation::without_statuses(self.now), PartOutcome::Passed);
            return PartResult { mode, of, evaluation, outcome, unreported: None, receipt: None };
        }
        let mut request =
            DecisionRequest::of_charges(self.now, self.policy, planned, self.on_failure);
        request.is_part = self.is_part;
        if mode == Mode::Shadow {
            request.plan.shadowed = std::mem::take(&mut request.plan.enforced);
        }
        let mut decision = match self.limiter.decide_at_once(&mut request) {
            Some(decision) => decision,
            None => self.limiter.decide_or_release(request).await,
        };
        // A limit of a descriptor can have a candidate that takes permits. Envoy does not report the
        // end of a request.
        self.limiter.release_permits_of(&mut decision);
        self.result(mode, of, decision)
    }

    /// Returns the result of a part on which the limiter made the decision `decision`.
    fn result(&self, mode: Mode, of: Vec<Option<usize>>, mut decision: Decision) -> PartResult {
        let outcome = match decision.source {
            _ if decision.is_admitted() => PartOutcome::Passed,
            DecisionSource::Failure(error) => PartOutcome::Failed(error),
            _ => PartOutcome::Refused,
        };
        // A limit has no status if an override lifts the limit, or if the limit is not enforced for
        // its subject.
        let status_of = |charge| match mode {
            Mode::Shadow => decision.shadow_index(PlanPosition::Shadowed(charge)),
            Mode::Enforced | Mode::Quota(_) => {
                decision.status_index(PlanPosition::Enforced(charge))
            }
        };
        let of = of.into_iter().map(|charge| charge.and_then(status_of)).collect();
        let (evaluation, counted) = match (mode, decision.shadow.take()) {
            (Mode::Shadow, Some(shadow)) => (shadow, None),
            (_, shadow) => (decision.evaluation, shadow),
        };
        let Decision { source, candidates, receipt, .. } = decision;
        let unreported = self.is_part.then_some(Unreported { source, counted, candidates });
        PartResult { mode, of, evaluation, outcome, unreported, receipt }
    }

    /// Refuses a part without a charge. The statuses of its limits are read for the response. They
    /// have no influence on the outcome, so an error of this read is ignored.
    async fn refuse(&self, part: Part) -> PartResult {
        let Part { mode, charges: DescriptorCharges { planned, of }, .. } = part;
        let peek = match planned.is_empty() {
            true => None,
            false => self.limiter.peek_at(self.now, planned).await.ok(),
        };
        let status_of = |charge: Option<usize>| peek.as_ref()?.status_index(charge?);
        let of = of.into_iter().map(status_of).collect();
        let nothing = || Evaluation::without_statuses(self.now);
        let evaluation = peek.map_or_else(nothing, |peek| peek.evaluation);
        // This node refuses without the store, as it does for a subject that an override blocks.
        let source = DecisionSource::DenyCache;
        let unreported = Some(Unreported { source, counted: None, candidates: Vec::new() });
        let outcome = PartOutcome::Refused;
        PartResult { mode, of, evaluation, outcome, unreported, receipt: None }
    }

    /// Refunds the charge of a part. If the store does not answer, the charge is not refunded.
    async fn refund_part(&self, result: &mut PartResult) {
        let Some(receipt) = result.receipt.take() else { return };
        if self.limiter.refund_at(self.now, receipt).await.is_ok() {
            result.evaluation = std::mem::take(&mut result.evaluation).refunded();
        }
    }
}
