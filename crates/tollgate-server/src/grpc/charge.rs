//! Charging the descriptors of a request, together or each by itself.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use tollgate::core::policy::descriptors::{
    Counting, DescriptorCharges, DescriptorOutcome, DescriptorPlan, Hits, NodeMode,
    PlannedDescriptor, QuotaGroup,
};
use tollgate::core::policy::{ChargeOn, OnFailure, Plan, PlannedCharge};
use tollgate::core::{Evaluation, LimitStatus, Store, StoreError, Timestamp};
use tollgate::limiter::Terms;
use tollgate::{DecisionSource, Limiter, Receipt, Revision};

use super::request::{ParsedRequest, Size};

/// Descriptors that are charged together: all of them or none.
pub(super) struct Part {
    mode: Mode,
    charges: DescriptorCharges,
    action: PartAction,
}

/// What a refusal of some descriptors means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The request is refused.
    Enforced,
    /// Their group is over; the request is refused if all groups are.
    Quota(QuotaGroup),
    /// Nothing.
    Shadow,
}

/// Whether a part is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartAction {
    Charge,
    /// It is refused whatever its limits say, which are only looked at.
    Refuse,
}

/// What became of a part.
pub(super) struct PartResult {
    pub(super) mode: Mode,
    /// For each descriptor of the request which limit_status is its own, if one is.
    pub(super) of: Vec<Option<usize>>,
    /// Without standings if nothing had an answer.
    pub(super) evaluation: Evaluation,
    pub(super) outcome: PartOutcome,
    receipt: Option<Receipt>,
}

/// How a part came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartOutcome {
    Passed,
    Refused,
    /// The store had no answer, and the domain denies then.
    Failed(StoreError),
}

/// Charges what `plan` of `policy` says of `asked`, at `now`.
pub(super) async fn charge<S: Store>(
    limiter: &Limiter<S>,
    policy: &Arc<Revision>,
    now: Timestamp,
    plan: &DescriptorPlan<'_>,
    parsed: &ParsedRequest<'_>,
) -> Vec<PartResult> {
    let Some(domain) = plan.domain else { return Vec::new() };
    let parts = parts(domain.counting, plan, parsed);
    let charger = Charger { limiter, policy, now, on_failure: domain.on_failure };
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
        let alone = plan.descriptors[..index].iter().enumerate();
        let place = match counting {
            Counting::Atomic => parts.iter().position(|part| part.mode == mode),
            Counting::Each => Some(alone.filter(|(other, _)| counts(other)).count()),
        };
        if let Some(part) = place.and_then(|place| parts.get_mut(place)) {
            part.action = PartAction::Refuse;
        }
    }
    parts
}

/// Whether no limit admits what the descriptor at `index` takes.
fn exceeds_capacity(plan: &DescriptorPlan<'_>, parsed: &ParsedRequest<'_>, index: usize) -> bool {
    matches!(parsed.hits(index), Hits::Charge(_))
        && match plan.descriptors[index].outcome {
            DescriptorOutcome::Blocked => true,
            DescriptorOutcome::Limited(_) => parsed.size(index) == Size::Excessive,
            DescriptorOutcome::Unmatched
            | DescriptorOutcome::Unlimited
            | DescriptorOutcome::CasOutcome => false,
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

/// Charges parts of one request.
struct Charger<'l, S> {
    limiter: &'l Limiter<S>,
    policy: &'l Arc<Revision>,
    now: Timestamp,
    on_failure: OnFailure,
}

impl<S: Store> Charger<'_, S> {
    /// Every part by itself.
    async fn all(&self, parts: Vec<Part>) -> Vec<PartResult> {
        // Nearly always there is one, which has nobody to wait for.
        match <[Part; 1]>::try_from(parts) {
            Ok([only]) => vec![self.one(only).await],
            Err(parts) => join_all(parts.into_iter().map(|part| self.one(part))).await,
        }
    }

    /// All parts of a request that is refused leave no trace, but for those in shadow mode.
    ///
    /// Quotas are alternatives, which no single charge can say: each group is charged by itself
    /// first, and given back where what is enforced refuses.
    async fn together(&self, parts: Vec<Part>) -> Vec<PartResult> {
        let is_quota = |part: &Part| matches!(part.mode, Mode::Quota(_));
        let (quotas, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_quota);
        if quotas.is_empty() {
            return self.all(others).await;
        }
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

    async fn one(&self, Part { mode, charges, action }: Part) -> PartResult {
        let DescriptorCharges { planned, of } = charges;
        if planned.is_empty() || action == PartAction::Refuse {
            // How they stand is told if it is known; it decides nothing.
            let looked = match planned.is_empty() {
                true => None,
                false => self.limiter.look_at(self.now, &planned).await.ok(),
            };
            let nothing = || Evaluation::without_statuses(self.now);
            let evaluation = looked.map_or_else(nothing, |(evaluation, _)| evaluation);
            let outcome = if action == PartAction::Refuse {
                PartOutcome::Refused
            } else {
                PartOutcome::Passed
            };
            return PartResult { mode, of, evaluation, outcome, receipt: None };
        }
        let plan = Plan { enforced: planned.clone(), ..Plan::default() };
        let on_failure = if mode == Mode::Shadow { OnFailure::Allow } else { self.on_failure };
        let terms = Terms { charge: ChargeOn::Arrival, on_failure };
        let decision = self.limiter.check_on_terms_at(self.now, self.policy, plan, terms).await;
        let outcome = match decision.source {
            _ if decision.is_admitted() => PartOutcome::Passed,
            DecisionSource::Failure(error) => PartOutcome::Failed(error),
            _ => PartOutcome::Refused,
        };
        let of = self.status_indices(of, &planned, &decision.evaluation);
        PartResult { mode, of, evaluation: decision.evaluation, outcome, receipt: decision.receipt }
    }

    /// The standings that are those of `planned`: whom a limit is not enforced for, or an override
    /// lets pass, has none.
    fn status_indices(
        &self,
        of: Vec<Option<usize>>,
        planned: &[PlannedCharge],
        evaluation: &Evaluation,
    ) -> Vec<Option<usize>> {
        if planned.len() == evaluation.statuses.len() {
            return of;
        }
        let mut standings = evaluation.statuses.iter().enumerate().peekable();
        let mut place = |one: &PlannedCharge| {
            let shares = self.limiter.shares(self.now, vec![one.clone()]);
            let decides = !shares.enforced.is_empty();
            let is_its = |(_, limit_status): &(usize, &LimitStatus)| {
                decides && limit_status.limit.name() == one.limit.name()
            };
            standings.next_if(is_its).map(|(place, _)| place)
        };
        let places: Vec<_> = planned.iter().map(&mut place).collect();
        of.into_iter().map(|place| places.get(place?).copied().flatten()).collect()
    }

    /// Undoes what was charged. What the store does not answer to stays charged.
    async fn refund_part(&self, result: &mut PartResult) {
        let Some(receipt) = result.receipt.take() else { return };
        if self.limiter.refund_at(self.now, receipt).await.is_ok() {
            result.evaluation = std::mem::take(&mut result.evaluation).refunded();
        }
    }
}
