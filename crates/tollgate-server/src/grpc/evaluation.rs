//! The result of a request, combined from the results of its parts. A part consists of the
//! descriptors that are charged together.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use tollgate::model::policy::descriptors::{DescriptorOutcome, DescriptorPlan, Hits, Limited};
use tollgate::model::{Cost, Evaluation, LimitStatus, Store, StoreError, Timestamp};
use tollgate::{Limiter, Revision};

use super::charge::{Mode, PartOutcome, PartResult, charge};
use super::refund::refund_hits;
use super::report::Report;
use super::request::{ParsedRequest, Size};

/// The combined result of all parts of a request.
pub(super) struct DescriptorEvaluation<'p> {
    pub(super) now: Timestamp,
    pub(super) plan: DescriptorPlan<'p>,
    /// One entry for each descriptor: the status of its limit, or `None` if the status is unknown.
    pub(super) statuses: Vec<Option<LimitStatus>>,
    /// One entry for each descriptor: whether the descriptor is over its limit.
    pub(super) is_over: Vec<bool>,
    /// Whether the request may pass.
    pub(super) overall: OverallResult,
    /// The statuses of the limits that decided, each limit once. Empty if neither the store nor a
    /// fallback answered.
    pub(super) evaluation: Evaluation,
}

/// Whether a request may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverallResult {
    WithinLimit,
    OverLimit,
}

impl<'p> DescriptorEvaluation<'p> {
    /// Charges the descriptors of `parsed` according to `policy`. Descriptors with negative hits
    /// are refunded instead.
    ///
    /// # Errors
    /// [`StoreError`] if the store did not answer, and `on_failure` of the domain is `deny`.
    pub(super) async fn evaluate<S: Store + 'static>(
        limiter: &Arc<Limiter<S>>,
        policy: &'p Arc<Revision>,
        parsed: &ParsedRequest<'_>,
    ) -> Result<Self, StoreError> {
        let now = limiter.now();
        let descriptors = parsed.descriptors();
        let plan = policy.plan_descriptors(parsed.domain, &descriptors, limiter.key());
        let to_refund: Vec<_> = refunds(&plan).collect();
        let (mut results, refunded) = match to_refund.is_empty() {
            true => (charge(limiter, policy, now, &plan, parsed).await, Vec::new()),
            false => {
                let refunded = to_refund.into_iter().map(|(index, limited, cost)| async move {
                    (index, refund_hits(limiter, now, limited, cost).await.ok().flatten())
                });
                // Boxed, because refunds are rare, and every call would have a larger future.
                let charged = charge(limiter, policy, now, &plan, parsed);
                Box::pin(join(charged, join_all(refunded))).await
            }
        };
        let outcome = combined_outcome(&results);
        let mut statuses = statuses(plan.descriptors.len(), &results);
        for (index, limit_status) in refunded {
            statuses[index] = limit_status;
        }
        let is_over = (0..statuses.len()).map(|index| is_over(&plan, parsed, &statuses, index));
        let is_over = is_over.collect();
        let report = Report::of(now, &mut results, outcome);
        let evaluation = deciding_statuses(now, results, outcome);
        let evaluation = match report {
            Some(report) => {
                let on_failure = plan.domain.map(|domain| domain.on_failure).unwrap_or_default();
                report.send(limiter, policy, outcome, evaluation, on_failure)
            }
            None => evaluation,
        };
        let overall = match outcome {
            PartOutcome::Passed => OverallResult::WithinLimit,
            PartOutcome::Refused => OverallResult::OverLimit,
            PartOutcome::Failed(error) => return Err(error),
        };
        Ok(Self { now, plan, statuses, is_over, overall, evaluation })
    }
}

/// Returns the descriptors that request a refund by negative hits: the index of each descriptor,
/// its limit, and the units to refund.
fn refunds<'d>(plan: &'d DescriptorPlan<'_>) -> impl Iterator<Item = (usize, &'d Limited, Cost)> {
    plan.descriptors.iter().enumerate().filter_map(|(index, descriptor)| {
        match &descriptor.outcome {
            DescriptorOutcome::Limited(limited) => match limited.hits {
                Hits::Refund(cost) => Some((index, limited, cost)),
                Hits::Charge(_) => None,
            },
            _ => None,
        }
    })
}

/// Returns the outcome of a request with the parts `results`: `Failed` if one part failed. Otherwise
/// `Refused` if an enforced part is refused, or if all quota groups are over their limits. A group
/// is over its limit if any of its parts is refused.
fn combined_outcome(results: &[PartResult]) -> PartOutcome {
    let mut outcomes = results.iter().map(|one| one.outcome);
    if let Some(failed) = outcomes.find(|outcome| matches!(outcome, PartOutcome::Failed(_))) {
        return failed;
    }
    let is_refused = |one: &&PartResult| one.outcome == PartOutcome::Refused;
    let enforced = results.iter().filter(is_refused).any(|one| one.mode == Mode::Enforced);
    let mut groups = results.iter().filter(|one| matches!(one.mode, Mode::Quota(_))).peekable();
    let all_over = groups.peek().is_some() && groups.all(|group| is_mode_over(results, group.mode));
    if enforced || all_over { PartOutcome::Refused } else { PartOutcome::Passed }
}

fn is_mode_over(results: &[PartResult], mode: Mode) -> bool {
    results.iter().any(|one| one.mode == mode && one.outcome == PartOutcome::Refused)
}

fn statuses(count: usize, results: &[PartResult]) -> Vec<Option<LimitStatus>> {
    let of = |index: usize| {
        results.iter().find_map(|one| one.evaluation.statuses.get(one.of[index]?)).cloned()
    };
    (0..count).map(of).collect()
}

fn is_over(
    plan: &DescriptorPlan<'_>,
    parsed: &ParsedRequest<'_>,
    statuses: &[Option<LimitStatus>],
    index: usize,
) -> bool {
    let descriptor = &plan.descriptors[index];
    let counts =
        Mode::of(descriptor) != Mode::Shadow && matches!(parsed.hits(index), Hits::Charge(_));
    counts
        && match descriptor.outcome {
            DescriptorOutcome::Blocked => true,
            DescriptorOutcome::Limited(_) => {
                parsed.size(index) == Size::Excessive
                    || statuses[index].as_ref().is_some_and(LimitStatus::is_refusal)
            }
            DescriptorOutcome::Unmatched
            | DescriptorOutcome::Unlimited
            | DescriptorOutcome::Replaced => false,
        }
}

/// Returns the statuses of the limits that decided on a request with the outcome `outcome`. If the
/// request passes, the statuses of quota groups that are over their limits are left out, because
/// another group admitted the request.
fn deciding_statuses(now: Timestamp, results: Vec<PartResult>, outcome: PartOutcome) -> Evaluation {
    let is_deciding = |one: &PartResult| match (one.mode, outcome) {
        (_, PartOutcome::Failed(_)) | (Mode::Shadow, _) => false,
        (Mode::Enforced, _) | (Mode::Quota(_), PartOutcome::Refused) => true,
        (Mode::Quota(_), PartOutcome::Passed) => one.outcome == PartOutcome::Passed,
    };
    let deciding_statuses = results.into_iter().filter(is_deciding);
    Evaluation {
        now,
        statuses: deciding_statuses.flat_map(|one| one.evaluation.statuses).collect(),
    }
}
