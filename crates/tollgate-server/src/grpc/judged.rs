//! What became of a request, all of its parts together.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use tollgate::core::policy::descriptors::{DescriptorPlan, Hits, Limited, Outcome};
use tollgate::core::{Cost, Standing, Store, StoreError, Timestamp, Verdict};
use tollgate::{Limiter, Revision};

use super::charge::{Role, Tried, Tries, charge};
use super::give_back::give_back;
use super::request::{Asked, Size};

/// What became of a request.
pub(super) struct Judged<'p> {
    pub(super) now: Timestamp,
    pub(super) plan: DescriptorPlan<'p>,
    /// For each descriptor how it stands, where that is known.
    pub(super) stands: Vec<Option<Standing>>,
    /// For each descriptor whether it is over its limit.
    pub(super) is_over: Vec<bool>,
    /// Whether the request may pass.
    pub(super) overall: Overall,
    /// How what decided stands, each limit once. Without standings if nothing had an answer.
    pub(super) verdict: Verdict,
}

/// Whether a request may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overall {
    Passes,
    Over,
}

impl<'p> Judged<'p> {
    /// Counts what is asked by `policy`, and gives back what is given back.
    ///
    /// # Errors
    /// [`StoreError`] if the store had no answer, and the domain denies then.
    pub(super) async fn ask<S: Store>(
        limiter: &Limiter<S>,
        policy: &'p Arc<Revision>,
        asked: &Asked<'_>,
    ) -> Result<Self, StoreError> {
        let now = limiter.now();
        let descriptors = asked.descriptors();
        let plan = policy.plan_descriptors(asked.domain, &descriptors, limiter.key());
        let to_give_back: Vec<_> = given_back(&plan).collect();
        let (tried, given_back) = match to_give_back.is_empty() {
            true => (charge(limiter, policy, now, &plan, asked).await, Vec::new()),
            false => {
                let given_back =
                    to_give_back.into_iter().map(|(index, limited, cost)| async move {
                        (index, give_back(limiter, now, limited, cost).await.ok().flatten())
                    });
                join(charge(limiter, policy, now, &plan, asked), join_all(given_back)).await
            }
        };
        let overall = overall(&tried)?;
        let mut stands = stands(plan.descriptors.len(), &tried);
        for (index, standing) in given_back {
            stands[index] = standing;
        }
        let is_over = (0..stands.len()).map(|index| is_over(&plan, asked, &stands, index));
        let is_over = is_over.collect();
        let verdict = told(now, tried, overall);
        Ok(Self { now, plan, stands, is_over, overall, verdict })
    }
}

/// The descriptors that give something back.
fn given_back<'d>(
    plan: &'d DescriptorPlan<'_>,
) -> impl Iterator<Item = (usize, &'d Limited, Cost)> {
    plan.descriptors.iter().enumerate().filter_map(|(index, descriptor)| {
        match &descriptor.outcome {
            Outcome::Limited(limited) => match limited.hits {
                Hits::GiveBack(cost) => Some((index, limited, cost)),
                Hits::Take(_) => None,
            },
            _ => None,
        }
    })
}

/// Over if anything enforced is, or all groups of quotas are, each by any of its parts.
fn overall(tried: &[Tried]) -> Result<Overall, StoreError> {
    for one in tried {
        if let Tries::Failed(error) = one.outcome {
            return Err(error);
        }
    }
    let is_refused = |one: &&Tried| one.outcome == Tries::Refused;
    let enforced = tried.iter().filter(is_refused).any(|one| one.role == Role::Enforced);
    let mut groups = tried.iter().filter(|one| matches!(one.role, Role::Quota(_))).peekable();
    let all_over = groups.peek().is_some() && groups.all(|group| is_role_over(tried, group.role));
    Ok(if enforced || all_over { Overall::Over } else { Overall::Passes })
}

fn is_role_over(tried: &[Tried], role: Role) -> bool {
    tried.iter().any(|one| one.role == role && one.outcome == Tries::Refused)
}

fn stands(count: usize, tried: &[Tried]) -> Vec<Option<Standing>> {
    let of = |index: usize| {
        tried.iter().find_map(|one| one.verdict.standings.get(one.of[index]?)).cloned()
    };
    (0..count).map(of).collect()
}

fn is_over(
    plan: &DescriptorPlan<'_>,
    asked: &Asked<'_>,
    stands: &[Option<Standing>],
    index: usize,
) -> bool {
    let descriptor = &plan.descriptors[index];
    let counts = Role::of(descriptor) != Role::Shadow && matches!(asked.hits(index), Hits::Take(_));
    counts
        && match descriptor.outcome {
            Outcome::Blocked => true,
            Outcome::Limited(_) => {
                asked.size(index) == Size::Excessive
                    || stands[index].as_ref().is_some_and(Standing::is_refusal)
            }
            Outcome::Unmatched | Outcome::Unlimited | Outcome::Replaced => false,
        }
}

/// How what decided stands. Of a request that passes, groups of quotas that are over are left out:
/// what another one admits was not refused.
fn told(now: Timestamp, tried: Vec<Tried>, overall: Overall) -> Verdict {
    let is_told = |one: &Tried| match one.role {
        Role::Enforced => true,
        Role::Quota(_) => overall == Overall::Over || one.outcome == Tries::Passed,
        Role::Shadow => false,
    };
    let told = tried.into_iter().filter(is_told);
    Verdict { now, standings: told.flat_map(|one| one.verdict.standings).collect() }
}
