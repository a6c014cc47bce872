//! Evaluates the charges that cannot reject a request: of rules in shadow mode, of limits that are
//! not enforced for a subject, and of candidates of limits.

use tollgate_core::charge::ChargeId;
use tollgate_core::policy::{PlannedCharge, RuleMode};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{LimitStatus, Store, Timestamp};

use super::Limiter;
use super::candidate::Candidate;
use super::charge_mode::ChargeMode;
use super::evaluate::{ChargeRecord, EvaluationOutcome, FailureTerms};
use crate::decision::{CandidateOutcome, ChargePositions, Decision, Evaluated, PlanPosition};
use crate::overrides::Effect;
use crate::receipt::Receipt;

impl<S: Store> Limiter<S> {
    /// Makes the charges that cannot reject the request of `decision`, and adds their statuses and
    /// receipts to the decision. One store call makes the charges `counted`, and another store call
    /// makes the charges of the candidates of all limits. A refused request takes no permits and
    /// reserves no units.
    pub(super) async fn evaluate_counted(
        &self,
        id: ChargeId,
        mut decision: Decision,
        counted: Option<Vec<PlannedCharge>>,
        mut candidates: Vec<Candidate>,
        mode: ChargeMode,
    ) -> Decision {
        let mode = if decision.is_admitted() { mode.on_arrival() } else { mode.refused() };
        // If the request waited in a queue, this time is later than the arrival of the request.
        let now = decision.evaluation.now;
        if let Some(counted) = counted {
            let (charges, mut applied) =
                self.apply_overrides(now, counted, Evaluated::Counted, &mut decision.positions);
            let outcome = self
                .evaluate(now, id, RuleMode::Shadow, charges, mode, FailureTerms::COUNTED)
                .await;
            let EvaluationOutcome { evaluation, source, record, candidates: more, .. } = outcome;
            let is_answered =
                !matches!(source, DecisionSource::Failure(_)) || !evaluation.statuses.is_empty();
            decision.shadow = Some(evaluation);
            decision.add(record);
            candidates.extend(more);
            if is_answered {
                applied.retain(|applied| applied.definition.effect == Effect::Counted);
                decision.overrides.append(&mut applied);
            }
        }
        if !candidates.is_empty() {
            self.evaluate_candidates(now, id, &mut decision, candidates, mode).await;
        }
        decision
    }

    /// Charges the candidates in one store call, all or none, as if each candidate replaced its
    /// limit. Charges no candidate if a limit without a candidate refused the request.
    async fn evaluate_candidates(
        &self,
        now: Timestamp,
        id: ChargeId,
        decision: &mut Decision,
        candidates: Vec<Candidate>,
        mode: ChargeMode,
    ) {
        let has_none = |status: &LimitStatus| status.limit.candidate().is_none();
        if decision.evaluation.refusals().any(has_none) {
            return;
        }
        let (live, planned): (Vec<_>, Vec<_>) =
            candidates.into_iter().map(|one| ((one.evaluated, one.live), one.planned)).unzip();
        // The positions of the candidates that are sent to the store: an override may remove a
        // candidate.
        let mut positions = ChargePositions::default();
        let (charges, _) = self.apply_overrides(now, planned, Evaluated::Enforced, &mut positions);
        let outcome =
            self.evaluate(now, id, RuleMode::Shadow, charges, mode, FailureTerms::COUNTED).await;
        decision.add(outcome.record);
        // A fallback has no counters of candidates, so there is nothing to compare.
        if let DecisionSource::Fallback(_) | DecisionSource::Failure(_) = outcome.source {
            return;
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
    }
}

impl Decision {
    /// Joins the receipts of `record` with the receipts of the decision. `record` has charges of
    /// the same request that cannot reject the request.
    fn add(&mut self, record: ChargeRecord) {
        self.receipt = Receipt::joined(self.receipt.take(), record.receipt);
        self.reserved = Receipt::joined(self.reserved.take(), record.reserved);
    }
}
