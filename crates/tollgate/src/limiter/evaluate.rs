//! Evaluates charges in one store call.

use tollgate_core::charge::{Charge, ChargeId, Operation};
use tollgate_core::policy::{OnFailure, PlannedCharge, Queue, RuleMode};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Evaluation, LimitStatus, Reading, Readings, Store, StoreError, Timestamp};

use super::Limiter;
use super::candidate::Candidate;
use super::charge_mode::ChargeMode;
use super::charge_record::ChargeRecord;
use super::overrides::Resolved;
use crate::receipt::Receipt;

/// The behavior if the store does not answer, or if only a concurrency limit has no free slot.
#[derive(Clone, Copy)]
pub(super) struct FailureTerms {
    pub(super) on_failure: OnFailure,
    pub(super) queue: Option<Queue>,
}

impl FailureTerms {
    /// The terms of charges that cannot reject: they do not wait, and a fallback's charges remain.
    pub(super) const COUNTED: Self = Self { on_failure: OnFailure::Local, queue: None };
}

/// The result of one evaluation.
pub(super) struct EvaluationOutcome {
    pub(super) evaluation: Evaluation,
    pub(super) source: DecisionSource,
    pub(super) record: ChargeRecord,
    /// The candidates of the limits that were evaluated.
    pub(super) candidates: Vec<Candidate>,
    /// The charge of each status, if one of them is conditional; otherwise empty.
    pub(super) conditional: Vec<PlannedCharge>,
}

impl<S: Store> Limiter<S> {
    /// Makes all of `charges` or none, peeks at the limits that are charged later, and records
    /// both.
    ///
    /// Every decision moves this future, so it stores no value twice and boxes rare work.
    pub(super) async fn evaluate(
        &self,
        now: Timestamp,
        id: ChargeId,
        mode: RuleMode,
        charges: Resolved,
        charge_mode: ChargeMode,
        terms: FailureTerms,
    ) -> EvaluationOutcome {
        let planned = match charges {
            Resolved::Charges(planned) => planned,
            Resolved::Blocked(planned, statuses) => {
                let outcome = EvaluationOutcome::blocked(now, statuses);
                self.notify_evaluated(mode, &planned, &outcome.evaluation);
                return outcome;
            }
        };
        let ask = |planned: &PlannedCharge| charge_mode.ask(planned, id);
        let (now, readings) = match terms.queue {
            None => (now, self.apply(now, &planned, ask).await),
            Some(queue) => Box::pin(self.apply_queued(now, &planned, ask, queue)).await,
        };
        let readings = match readings {
            Ok(readings) => readings,
            Err(error) => return EvaluationOutcome::failure(now, error),
        };
        let evaluation = self.evaluate_readings(now, &planned, &readings);
        let source = readings.source();
        let candidates = match source {
            DecisionSource::Store | DecisionSource::DenyCache | DecisionSource::Overflow => {
                Candidate::of(mode, &planned, &evaluation)
            }
            DecisionSource::Fallback(_) | DecisionSource::Failure(_) => Vec::new(),
        };
        self.notify_evaluated(mode, &planned, &evaluation);
        let conditional = match planned.iter().any(PlannedCharge::is_conditional) {
            true => planned.clone(),
            false => Vec::new(),
        };
        let mut record = ChargeRecord::of(id, charge_mode, planned, &readings);
        if let Some(receipt) = &mut record.receipt {
            receipt.set_charged_at(now);
        }
        let outcome = EvaluationOutcome { evaluation, source, record, candidates, conditional };
        if outcome.is_final(terms.on_failure) {
            return outcome;
        }
        Box::pin(self.undo(now, outcome, terms.on_failure)).await
    }

    /// Returns the statuses of `planned` after the store returned `readings`, with the suggested waits
    /// of concurrency limits.
    pub(super) fn evaluate_readings(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        readings: &Readings,
    ) -> Evaluation {
        let mut evaluation = Evaluation::without_statuses(now);
        self.evaluate_into(now, planned, readings, &mut evaluation);
        evaluation
    }

    /// Replaces `evaluation` by that of `planned` after the store returned `readings`.
    pub(super) fn evaluate_into(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        readings: &[Reading],
        evaluation: &mut Evaluation,
    ) {
        let charges = planned.iter().zip(readings);
        evaluation.replace(
            now,
            charges.map(|(planned, reading)| (&planned.limit, planned.cost, reading)),
        );
        if !evaluation.is_admitted() {
            self.hold_times.suggest_waits(evaluation);
        }
    }

    /// Notifies the observer and the tracer of limits that were enforced.
    fn notify_evaluated(&self, mode: RuleMode, planned: &[PlannedCharge], evaluation: &Evaluation) {
        if mode == RuleMode::Enforce && !planned.is_empty() {
            self.observer.evaluated(planned, evaluation);
            self.tracer.evaluated(&self.key, planned, evaluation);
        }
    }

    /// Refunds the charges of an outcome that is not [final](EvaluationOutcome::is_final).
    async fn undo(
        &self,
        now: Timestamp,
        mut outcome: EvaluationOutcome,
        on_failure: OnFailure,
    ) -> EvaluationOutcome {
        if !outcome.evaluation.is_admitted() {
            let ChargeRecord { receipt, reserved, .. } = std::mem::take(&mut outcome.record);
            // Units of limits that count refusals remain charged.
            let undone = receipt.map(Receipt::without_counted_refusals);
            for receipt in undone.into_iter().chain(reserved) {
                let _ = self.refund_at(now, receipt).await;
            }
        }
        match outcome.source {
            DecisionSource::Fallback(error) if on_failure != OnFailure::Local => {
                let ChargeRecord { receipt, reserved, .. } = outcome.record;
                for receipt in [receipt, reserved].into_iter().flatten() {
                    let _ = self.refund_at(now, receipt).await;
                }
                EvaluationOutcome::failure(now, error)
            }
            _ => outcome,
        }
    }

    /// Charges all of `planned` or nothing, under `id`.
    pub(super) async fn take(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        id: ChargeId,
    ) -> Result<Readings, StoreError> {
        self.apply(now, planned, |planned| Operation::Charge { cost: planned.cost, id }).await
    }

    /// Sends all of `planned` to the store in one call.
    pub(super) async fn apply(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        ask: impl Fn(&PlannedCharge) -> Operation,
    ) -> Result<Readings, StoreError> {
        if planned.is_empty() {
            return Ok(Readings::new());
        }
        let charges: Vec<Charge<'_>> = planned
            .iter()
            .map(|planned| {
                let PlannedCharge { limit, subject, .. } = planned;
                Charge { limit, subject, operation: ask(planned) }
            })
            .collect();
        let answer = self.store.apply(now, &charges).await;
        self.notify_holds(&charges, &answer);
        answer
    }
}

impl EvaluationOutcome {
    /// Whether the charges remain. They are undone if a peek refused the request, or if a fallback
    /// made them for rules without a fallback.
    fn is_final(&self, on_failure: OnFailure) -> bool {
        let is_wanted = on_failure == OnFailure::Local;
        let is_unwanted_fallback = matches!(self.source, DecisionSource::Fallback(_)) && !is_wanted;
        !is_unwanted_fallback && (self.evaluation.is_admitted() || self.record.is_empty())
    }

    fn without_charges(evaluation: Evaluation, source: DecisionSource) -> Self {
        let record = ChargeRecord { receipt: None, reserved: None, pending: None };
        let (candidates, conditional) = (Vec::new(), Vec::new());
        Self { evaluation, source, record, candidates, conditional }
    }

    /// The outcome if neither the store nor a fallback answered.
    fn failure(now: Timestamp, error: StoreError) -> Self {
        let (evaluation, source) =
            (Evaluation::without_statuses(now), DecisionSource::Failure(error));
        Self::without_charges(evaluation, source)
    }

    /// The outcome if overrides block the request.
    fn blocked(now: Timestamp, statuses: Vec<LimitStatus>) -> Self {
        let (evaluation, source) = (Evaluation { now, statuses }, DecisionSource::DenyCache);
        Self::without_charges(evaluation, source)
    }
}
