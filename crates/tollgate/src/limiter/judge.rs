//! One question to the store: what is enforced of a plan, or counted beside it, and its evaluation.

use std::future::Future;
use std::sync::Arc;

use tollgate_core::charge::{Charge, ChargeId, Operation};
use tollgate_core::policy::{OnFailure, PlannedCharge, Queue, RuleMode};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Evaluation, LimitStatus, Readings, Store, StoreError, Timestamp};

use super::Limiter;
use super::beside::Beside;
use super::overridden::{Overridden, OverriddenPlan, Overrule};
use super::proof::Proof;
use super::taking::Taking;

impl<S: Store> Limiter<S> {
    /// Charges everything planned or nothing, looks at what is charged later, and keeps proof.
    ///
    /// Its future is moved with every decision: it holds nothing twice, and what is seldom done lies
    /// apart from it.
    pub(super) fn judge(
        &self,
        now: Timestamp,
        id: ChargeId,
        mode: RuleMode,
        planned: Vec<PlannedCharge>,
        taking: Taking,
        unless: Unless,
    ) -> impl Future<Output = Judged> + Send + use<'_, S> {
        let Overridden { planned, by } = self.overridden(now, planned);
        async move {
            let planned = match planned {
                OverriddenPlan::PlannedCharge(planned) => planned,
                OverriddenPlan::Blocked(planned, statuses) => {
                    let judged = Judged { by, ..Judged::blocked(now, statuses) };
                    self.tell_judged(mode, &planned, &judged.evaluation);
                    return judged;
                }
            };
            let ask = |planned: &PlannedCharge| taking.operation(planned, id);
            let (now, readings) = match unless.queue {
                None => (now, self.query(now, &planned, ask).await),
                Some(queue) => Box::pin(self.ask_in_line(now, &planned, ask, queue)).await,
            };
            let readings = match readings {
                Ok(readings) => readings,
                Err(error) => return Judged::failure(now, error),
            };
            let evaluation = evaluate_readings(now, &planned, &readings);
            let source = readings.source();
            let beside = match source {
                DecisionSource::Store | DecisionSource::DenyCache => {
                    Beside::of(&planned, &evaluation)
                }
                DecisionSource::Fallback(_) | DecisionSource::Failure(_) => Vec::new(),
            };
            self.tell_judged(mode, &planned, &evaluation);
            let proof = Proof::of(id, taking, planned, &readings);
            let judged = Judged { evaluation, source, proof, beside, by };
            if judged.stands(unless.on_failure) {
                return judged;
            }
            Box::pin(self.undo(now, judged, unless.on_failure)).await
        }
    }

    fn tell_judged(&self, mode: RuleMode, planned: &[PlannedCharge], evaluation: &Evaluation) {
        if mode == RuleMode::Enforce && !planned.is_empty() {
            self.observer.on_evaluation(planned, evaluation);
            self.tracer.on_evaluation(&self.key, planned, evaluation);
        }
    }

    /// Gives back what does not [stand](Judged::stands).
    async fn undo(&self, now: Timestamp, mut judged: Judged, on_failure: OnFailure) -> Judged {
        if !judged.evaluation.is_admitted() {
            let Proof { receipt, reserved, .. } = std::mem::take(&mut judged.proof);
            // Limits that count refusals have counted it.
            let leases = receipt.map(|taken| taken.split_permits().1);
            for receipt in leases.into_iter().chain(reserved) {
                let _ = self.refund_at(now, receipt).await;
            }
        }
        match judged.source {
            DecisionSource::Fallback(error) if on_failure != OnFailure::Local => {
                for receipt in [judged.proof.receipt, judged.proof.reserved].into_iter().flatten() {
                    let _ = self.refund_at(now, receipt).await;
                }
                Judged::failure(now, error)
            }
            _ => judged,
        }
    }

    /// Takes all of it or nothing, for `id`.
    pub(super) async fn take(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        id: ChargeId,
    ) -> Result<Readings, StoreError> {
        self.query(now, planned, |planned| Operation::Charge { cost: planned.cost, id }).await
    }

    pub(super) async fn query(
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
        self.tell_held(&charges, &answer);
        answer
    }
}

/// What is done where the store has no answer, and where only a place in flight is missing.
#[derive(Clone, Copy)]
pub(super) struct Unless {
    pub(super) on_failure: OnFailure,
    pub(super) queue: Option<Queue>,
}

impl Unless {
    /// Of what decides nothing: nobody waits for it, and nobody hears where there is no answer.
    pub(super) const BESIDE: Self = Self { on_failure: OnFailure::Local, queue: None };
}

/// What the enforced rules, or those in shadow mode, make of a request.
pub(super) struct Judged {
    pub(super) evaluation: Evaluation,
    pub(super) source: DecisionSource,
    pub(super) proof: Proof,
    /// What is tried beside it.
    pub(super) beside: Vec<Beside>,
    /// Overrides that decided in it.
    pub(super) by: Vec<Overrule>,
}

impl Judged {
    /// Whether what was taken stays taken: not what a look refused, nor what stood in for a store
    /// whose rules do not ask for that.
    fn stands(&self, on_failure: OnFailure) -> bool {
        let is_asked_for = on_failure == OnFailure::Local;
        let stood_in = matches!(self.source, DecisionSource::Fallback(_)) && !is_asked_for;
        !stood_in && (self.evaluation.is_admitted() || self.proof.is_none())
    }

    pub(super) fn failure(now: Timestamp, error: StoreError) -> Self {
        let (evaluation, source) =
            (Evaluation::without_statuses(now), DecisionSource::Failure(error));
        Self { evaluation, source, proof: Proof::default(), beside: Vec::new(), by: Vec::new() }
    }

    fn blocked(now: Timestamp, statuses: Vec<LimitStatus>) -> Self {
        let (evaluation, source) = (Evaluation { now, statuses }, DecisionSource::DenyCache);
        Self { evaluation, source, proof: Proof::default(), beside: Vec::new(), by: Vec::new() }
    }
}

pub(super) fn evaluate_readings(
    now: Timestamp,
    planned: &[PlannedCharge],
    readings: &Readings,
) -> Evaluation {
    let statuses = planned.iter().zip(readings.iter()).map(|(planned, reading)| {
        LimitStatus::new(Arc::clone(&planned.limit), planned.cost, reading)
    });
    Evaluation { now, statuses: statuses.collect() }
}
