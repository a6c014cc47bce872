//! Charging the descriptors of a request, together or each by itself.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use tollgate::core::policy::descriptors::{
    Charges, Counting, DescriptorPlan, Hits, NodeMode, Outcome, PlannedDescriptor, QuotaGroup,
};
use tollgate::core::policy::{ChargeOn, OnFailure, Plan, Planned};
use tollgate::core::{Standing, Store, StoreError, Timestamp, Verdict};
use tollgate::limiter::Terms;
use tollgate::{Limiter, Receipt, Revision, Source};

use super::request::{Asked, Size};

/// Descriptors that are charged together: all of them or none.
pub(super) struct Part {
    role: Role,
    charges: Charges,
    stance: Stance,
}

/// What a refusal of some descriptors means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The request is refused.
    Enforced,
    /// Their group is over; the request is refused if all groups are.
    Quota(QuotaGroup),
    /// Nothing.
    Shadow,
}

/// Whether a part is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stance {
    Take,
    /// It is refused whatever its limits say, which are only looked at.
    Refuse,
}

/// What became of a part.
pub(super) struct Tried {
    pub(super) role: Role,
    /// For each descriptor of the request which standing is its own, if one is.
    pub(super) of: Vec<Option<usize>>,
    /// Without standings if nothing had an answer.
    pub(super) verdict: Verdict,
    pub(super) outcome: Tries,
    receipt: Option<Receipt>,
}

/// How a part came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tries {
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
    asked: &Asked<'_>,
) -> Vec<Tried> {
    let Some(domain) = plan.domain else { return Vec::new() };
    let parts = parts(domain.counting, plan, asked);
    let charger = Charger { limiter, policy, now, on_failure: domain.on_failure };
    match domain.counting {
        Counting::Each => charger.all(parts).await,
        Counting::Atomic => charger.together(parts).await,
    }
}

fn parts(counting: Counting, plan: &DescriptorPlan<'_>, asked: &Asked<'_>) -> Vec<Part> {
    let counts = |index: &usize| {
        matches!(plan.descriptors[*index].outcome, Outcome::Limited(_) | Outcome::Blocked)
    };
    let mut parts: Vec<Part> = Vec::new();
    for index in (0..plan.descriptors.len()).filter(counts) {
        let own = &plan.descriptors[index];
        let role = Role::of(own);
        if counting == Counting::Atomic && parts.iter().any(|part| part.role == role) {
            continue;
        }
        let charges = plan.charges(|one| match counting {
            Counting::Each => std::ptr::eq(one, own),
            Counting::Atomic => Role::of(one) == role,
        });
        parts.push(Part { role, charges, stance: Stance::Take });
    }
    for index in (0..plan.descriptors.len()).filter(|index| is_hopeless(plan, asked, *index)) {
        let role = Role::of(&plan.descriptors[index]);
        let alone = plan.descriptors[..index].iter().enumerate();
        let place = match counting {
            Counting::Atomic => parts.iter().position(|part| part.role == role),
            Counting::Each => Some(alone.filter(|(other, _)| counts(other)).count()),
        };
        if let Some(part) = place.and_then(|place| parts.get_mut(place)) {
            part.stance = Stance::Refuse;
        }
    }
    parts
}

/// Whether no limit admits what the descriptor at `index` takes.
fn is_hopeless(plan: &DescriptorPlan<'_>, asked: &Asked<'_>, index: usize) -> bool {
    matches!(asked.hits(index), Hits::Take(_))
        && match plan.descriptors[index].outcome {
            Outcome::Blocked => true,
            Outcome::Limited(_) => asked.size(index) == Size::Excessive,
            Outcome::Unmatched | Outcome::Unlimited | Outcome::Replaced => false,
        }
}

impl Role {
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
    async fn all(&self, parts: Vec<Part>) -> Vec<Tried> {
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
    async fn together(&self, parts: Vec<Part>) -> Vec<Tried> {
        let is_quota = |part: &Part| matches!(part.role, Role::Quota(_));
        let (quotas, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_quota);
        if quotas.is_empty() {
            return self.all(others).await;
        }
        let (enforced, shadows): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|part| part.role == Role::Enforced);
        let (mut quotas, mut tried) = join(self.all(quotas), self.all(shadows)).await;
        let has_room = quotas.iter().any(|quota| quota.outcome == Tries::Passed);
        let failed = quotas.iter().any(|quota| matches!(quota.outcome, Tries::Failed(_)));
        let mut passes = !failed;
        for mut part in enforced {
            if failed || !has_room {
                part.stance = Stance::Refuse;
            }
            let enforced = self.one(part).await;
            passes &= enforced.outcome == Tries::Passed;
            tried.push(enforced);
        }
        if !passes {
            join_all(quotas.iter_mut().map(|quota| self.take_back(quota))).await;
        }
        tried.extend(quotas);
        tried
    }

    async fn one(&self, Part { role, charges, stance }: Part) -> Tried {
        let Charges { planned, of } = charges;
        if planned.is_empty() || stance == Stance::Refuse {
            // How they stand is told if it is known; it decides nothing.
            let looked = match planned.is_empty() {
                true => None,
                false => self.limiter.look_at(self.now, &planned).await.ok(),
            };
            let nothing = || Verdict::without_standings(self.now);
            let verdict = looked.map_or_else(nothing, |(verdict, _)| verdict);
            let outcome = if stance == Stance::Refuse { Tries::Refused } else { Tries::Passed };
            return Tried { role, of, verdict, outcome, receipt: None };
        }
        let plan = Plan { enforced: planned.clone(), ..Plan::default() };
        let on_failure = if role == Role::Shadow { OnFailure::Allow } else { self.on_failure };
        let terms = Terms { charge: ChargeOn::Arrival, on_failure };
        let decision = self.limiter.check_on_terms_at(self.now, self.policy, plan, terms).await;
        let outcome = match decision.source {
            _ if decision.is_admitted() => Tries::Passed,
            Source::Failure(error) => Tries::Failed(error),
            _ => Tries::Refused,
        };
        let of = self.places(of, &planned, &decision.verdict);
        Tried { role, of, verdict: decision.verdict, outcome, receipt: decision.receipt }
    }

    /// The standings that are those of `planned`: whom a limit is not enforced for, or an override
    /// lets pass, has none.
    fn places(
        &self,
        of: Vec<Option<usize>>,
        planned: &[Planned],
        verdict: &Verdict,
    ) -> Vec<Option<usize>> {
        if planned.len() == verdict.standings.len() {
            return of;
        }
        let mut standings = verdict.standings.iter().enumerate().peekable();
        let mut place = |one: &Planned| {
            let shares = self.limiter.shares(self.now, vec![one.clone()]);
            let decides = !shares.enforced.is_empty();
            let is_its = |(_, standing): &(usize, &Standing)| {
                decides && standing.limit.name() == one.limit.name()
            };
            standings.next_if(is_its).map(|(place, _)| place)
        };
        let places: Vec<_> = planned.iter().map(&mut place).collect();
        of.into_iter().map(|place| places.get(place?).copied().flatten()).collect()
    }

    /// Undoes what was charged. What the store does not answer to stays charged.
    async fn take_back(&self, tried: &mut Tried) {
        let Some(receipt) = tried.receipt.take() else { return };
        if self.limiter.refund_at(self.now, receipt).await.is_ok() {
            tried.verdict = std::mem::take(&mut tried.verdict).refunded();
        }
    }
}
