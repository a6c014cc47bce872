//! Evaluates the charges that cannot reject a request: of rules in shadow mode, of limits that are
//! not enforced for a subject, and of candidates of limits.

use tollgate_core::charge::ChargeId;
use tollgate_core::policy::{PlannedCharge, RuleMode};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Evaluation, LimitStatus, Store, Timestamp};

use super::Limiter;
use super::candidate::Candidate;
use super::charge_mode::ChargeMode;
use super::charge_record::ChargeRecord;
use super::evaluate::{EvaluationOutcome, FailureTerms, Resolved};
use super::held_receipt::HeldReceipt;
use crate::decision::{CandidateOutcome, ChargePositions, Decision, Evaluated, PlanPosition};
use crate::overrides::Effect;
use crate::receipt::Receipt;

impl<S: Store> Limiter<S> {
    /// Makes the charges that cannot reject the request of `decision`, and adds their statuses and
    /// receipts to the decision. One store call makes the charges `counted`, and another store call
    /// makes the charges of the candidates of all limits. A refused request takes no permits and
    /// reserves no units. If the enforced charges took a permit of a concurrency limit, the request
    /// takes no further permit of this limit, and the status is that of the enforced charge. If the
    /// returned future is dropped before its end, `abandon` receives the receipts of the charges
    /// that were made.
    pub(super) async fn evaluate_counted(
        &self,
        id: ChargeId,
        mut decision: Decision,
        abandon: impl Fn(Receipt) + Copy + Send,
        counted: Option<Vec<PlannedCharge>>,
        mut candidates: Vec<Candidate>,
        mode: ChargeMode,
    ) -> Decision {
        let mode = if decision.is_admitted() { mode.on_arrival() } else { mode.refused() };
        let mut held = HeldReceipt::new(decision.receipt.take(), abandon);
        let terms = FailureTerms::counted(abandon);
        // If the request waited in a queue, this time is later than the arrival of the request.
        let now = decision.evaluation.now;
        if let Some(counted) = counted {
            let (mut charges, mut applied) =
                self.apply_overrides(now, counted, Evaluated::Counted, &mut decision.positions);
            let receipts = [held.receipt.as_ref(), decision.reserved.as_ref()];
            let held_already = HeldPermits::remove(&mut charges, receipts, &decision.evaluation);
            let mut outcome = self.evaluate(now, id, RuleMode::Shadow, charges, mode, terms).await;
            let is_answered = !matches!(outcome.source, DecisionSource::Failure(_))
                || !outcome.evaluation.statuses.is_empty();
            if is_answered {
                held_already.insert(&mut outcome);
            }
            let EvaluationOutcome { evaluation, record, candidates: more, .. } = outcome;
            decision.shadow = Some(evaluation);
            add(record, &mut held.receipt, &mut decision.reserved);
            candidates.extend(more);
            if is_answered {
                applied.retain(|applied| applied.definition.effect == Effect::Counted);
                decision.overrides.append(&mut applied);
            }
        }
        if !candidates.is_empty() {
            let record =
                self.evaluate_candidates((now, id, mode), &mut decision, candidates, terms).await;
            add(record, &mut held.receipt, &mut decision.reserved);
        }
        decision.receipt = held.receipt.take();
        decision
    }

    /// Charges the candidates in one store call, all or none, as if each candidate replaced its
    /// limit. Charges no candidate if a limit without a candidate refused the request. Returns the
    /// record of the charges.
    async fn evaluate_candidates<A: Fn(Receipt) + Copy + Send>(
        &self,
        (now, id, mode): (Timestamp, ChargeId, ChargeMode),
        decision: &mut Decision,
        candidates: Vec<Candidate>,
        terms: FailureTerms<A>,
    ) -> ChargeRecord {
        let has_none = |status: &LimitStatus| status.limit.candidate().is_none();
        if decision.evaluation.refusals().any(has_none) {
            return ChargeRecord::default();
        }
        let (live, planned): (Vec<_>, Vec<_>) =
            candidates.into_iter().map(|one| ((one.evaluated, one.live), one.planned)).unzip();
        // The positions of the candidates that are sent to the store: an override may remove a
        // candidate.
        let mut positions = ChargePositions::default();
        let (charges, _) = self.apply_overrides(now, planned, Evaluated::Enforced, &mut positions);
        let outcome = self.evaluate(now, id, RuleMode::Shadow, charges, mode, terms).await;
        // A fallback has no counters of candidates, so there is nothing to compare.
        if let DecisionSource::Fallback(_) | DecisionSource::Failure(_) = outcome.source {
            return outcome.record;
        }
        let statuses = outcome.evaluation.statuses.into_iter().enumerate();
        let outcomes = statuses.filter_map(|(index, candidate)| {
            let PlanPosition::Enforced(index) = positions.of(Evaluated::Enforced(index)) else {
                return None;
            };
            let (evaluated, live) = live.get(index)?.clone();
            let position = decision.positions.of(evaluated);
            Some(CandidateOutcome { position, live, candidate })
        });
        let outcomes = outcomes.collect();
        decision.candidates = outcomes;
        outcome.record
    }
}

/// The charges of a call that take permits which the request already holds: their places among the
/// charges of the call, in ascending order, and their statuses.
///
/// The store has one permit for a charge id. If a second call took this permit again, an undone
/// second call would release the permit of the enforced charge while the request runs.
struct HeldPermits(Vec<(usize, LimitStatus)>);

impl HeldPermits {
    /// Removes the charges on concurrency limits of which one of `receipts` has a permit.
    /// `enforced` has the statuses of these limits.
    fn remove(
        charges: &mut Resolved,
        receipts: [Option<&Receipt>; 2],
        enforced: &Evaluation,
    ) -> Self {
        let Resolved::Charges(planned) = charges else { return Self(Vec::new()) };
        let (mut removed, mut index) = (Vec::new(), 0);
        planned.retain(|planned| {
            let is_held = receipts.iter().flatten().any(|receipt| receipt.has_permit_of(planned));
            let counters = planned.limit.state_digest();
            let is_of = |status: &&LimitStatus| status.limit.state_digest() == counters;
            let status = enforced.statuses.iter().find(is_of).filter(|_| is_held);
            removed.extend(status.map(|status| (index, status.clone())));
            index += 1;
            status.is_none()
        });
        Self(removed)
    }

    /// Inserts the statuses of the removed charges into the outcome of the call without them.
    fn insert(self, outcome: &mut EvaluationOutcome) {
        for (place, status) in self.0 {
            outcome.evaluation.statuses.insert(place, status);
            for candidate in &mut outcome.candidates {
                if let Evaluated::Counted(index) = &mut candidate.evaluated {
                    *index += usize::from(*index >= place);
                }
            }
        }
    }
}

/// Joins `receipt`, and the receipt `reserved`, with the receipts of `further` charges of the same
/// request.
fn add(further: ChargeRecord, receipt: &mut Option<Receipt>, reserved: &mut Option<Receipt>) {
    *receipt = Receipt::joined(receipt.take(), further.receipt);
    *reserved = Receipt::joined(reserved.take(), further.reserved);
}
