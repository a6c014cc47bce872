//! Evaluates the charges of a plan: applies overrides to them, sends the remaining charges to the
//! store in one call, and records the charges that the store made.

use std::sync::Arc;

use tollgate_core::charge::{Charge, ChargeId, Operation};
use tollgate_core::policy::{ChargeOn, OnFailure, PlannedCharge, Queue, RuleMode};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{
    Admission, Evaluation, Limit, LimitStatus, Reading, Readings, Store, StoreError, Subject,
    Timestamp,
};

use super::Limiter;
use super::candidate::Candidate;
use super::charge_mode::ChargeMode;
use super::charge_record::ChargeRecord;
use super::held_receipt::HeldReceipt;
use super::queue::{Answered, Call};
use crate::decision::{AppliedOverride, ChargePositions, Decision, Evaluated};
use crate::overrides::{MAX_OVERRIDE_DURATION, NEVER, Overrides, ResolvedOverride};
use crate::receipt::Receipt;
use crate::revision::Revision;

/// The charges of a plan after the current overrides were applied.
pub(super) enum Resolved {
    /// The charges that the store evaluates.
    Charges(Vec<PlannedCharge>),
    /// The charges that overrides block, and the status of each charge. The store evaluates no
    /// charge of the request.
    Blocked(Vec<PlannedCharge>, Vec<LimitStatus>),
}

impl<S> Limiter<S> {
    /// Returns the overrides of this limiter.
    #[must_use]
    pub const fn overrides(&self) -> &Arc<Overrides> {
        &self.overrides
    }
}

impl<S: Store> Limiter<S> {
    /// Returns the limit that is charged for `subject` at `now` instead of the policy's `limit`:
    /// the limit of an override, or `limit` itself if no override replaces it. Returns `None` if an
    /// override lifts the limit.
    #[must_use]
    pub fn counted_by(
        &self,
        now: Timestamp,
        limit: &Arc<Limit>,
        subject: &Subject,
    ) -> Option<Arc<Limit>> {
        match self.overrides.resolve(limit, subject, &self.key, now) {
            Some((ResolvedOverride::Limit(limit), _)) => Some(limit),
            Some((ResolvedOverride::Unlimited, _)) => None,
            Some((ResolvedOverride::Blocked(_) | ResolvedOverride::Counted, _)) | None => {
                Some(Arc::clone(limit))
            }
        }
    }

    /// Applies the overrides in force at `now` to the charges `planned`. `list` is the variant of
    /// [`Evaluated`] for the list of the decision to which these charges belong.
    ///
    /// Returns the charges that remain to be evaluated, and the overrides that were applied, in the
    /// order of the plan. Removes the charges that are not sent to the store from `positions`.
    pub(super) fn apply_overrides(
        &self,
        now: Timestamp,
        planned: Vec<PlannedCharge>,
        list: fn(usize) -> Evaluated,
        positions: &mut ChargePositions,
    ) -> (Resolved, Vec<AppliedOverride>) {
        if self.overrides.is_empty() {
            return (Resolved::Charges(planned), Vec::new());
        }
        let (mut charged, mut blocked, mut statuses) = (Vec::new(), Vec::new(), Vec::new());
        let (mut charged_at, mut blocked_at) = (Vec::new(), Vec::new());
        let (mut applied, count) = (Vec::new(), planned.len());
        for (index, mut one) in planned.into_iter().enumerate() {
            let ruled = self.overrides.resolve(&one.limit, &one.subject, &self.key, now);
            if let Some((_, definition)) = &ruled {
                let (limit, definition) = (Arc::clone(&one.limit), Arc::clone(definition));
                applied.push(AppliedOverride {
                    position: positions.of(list(index)),
                    limit,
                    definition,
                });
            }
            match ruled.map(|(ruled, _)| ruled) {
                Some(ResolvedOverride::Unlimited) => continue,
                Some(ResolvedOverride::Blocked(until)) => {
                    statuses.push(blocked_status(now, until, &one));
                    blocked.push(one);
                    blocked_at.push(index);
                    continue;
                }
                Some(ResolvedOverride::Limit(limit)) => one.limit = limit,
                // In this case the charge is already among the charges that cannot reject the
                // request.
                Some(ResolvedOverride::Counted) | None => {}
            }
            charged.push(one);
            charged_at.push(index);
        }
        let (resolved, kept) = match blocked.is_empty() {
            true => (Resolved::Charges(charged), charged_at),
            false => (Resolved::Blocked(blocked, statuses), blocked_at),
        };
        if kept.len() < count {
            positions.keep(list, &kept);
        }
        (resolved, applied)
    }

    /// Returns `receipt` with other limits: the limit of an override in force at `now` takes the
    /// place of the limit that the override replaces. A refund can then fill the override's larger
    /// bucket, and a settlement can use the override's quota.
    pub(super) fn with_overridden_limits(&self, now: Timestamp, receipt: Receipt) -> Receipt {
        receipt.by(|limit, subject| {
            match self.overrides.resolve(limit, subject, &self.key, now)?.0 {
                ResolvedOverride::Limit(limit) => Some(limit),
                ResolvedOverride::Unlimited
                | ResolvedOverride::Blocked(_)
                | ResolvedOverride::Counted => None,
            }
        })
    }
}

/// Returns the status, at `now`, of a charge on a subject that an override blocks until `until`. The
/// status reports the whole quota as used until the override expires.
pub(super) fn blocked_status(
    now: Timestamp,
    until: Timestamp,
    planned: &PlannedCharge,
) -> LimitStatus {
    // A client cannot wait for the end of an override that has no end.
    let until = if until == NEVER { now.after(MAX_OVERRIDE_DURATION) } else { until };
    LimitStatus {
        limit: Arc::clone(&planned.limit),
        cost: planned.cost,
        used: planned.limit.capacity(),
        reserved: 0,
        remaining: 0,
        resets_at: until,
        full_reset_at: until,
        admission: Admission::At(until),
    }
}

/// The settings for an evaluation that does not succeed at once: what decides if the store does not
/// answer, how long the request waits if only a free slot of a concurrency limit is missing, and
/// what releases the permits if the client disconnects.
#[derive(Clone, Copy)]
pub(super) struct FailureTerms<A> {
    pub(super) on_failure: OnFailure,
    pub(super) queue: Option<Queue>,
    /// Receives the receipt of charges whose refund may not have arrived at the store, because the
    /// caller dropped the future.
    pub(super) abandon: A,
}

impl<A> FailureTerms<A> {
    /// Returns the terms of charges that cannot reject a request. The request does not wait for a
    /// slot. Charges that a fallback made are kept.
    pub(super) const fn counted(abandon: A) -> Self {
        Self { on_failure: OnFailure::Local, queue: None, abandon }
    }
}

/// The result of evaluating one list of charges.
pub(super) struct EvaluationOutcome {
    pub(super) evaluation: Evaluation,
    pub(super) source: DecisionSource,
    pub(super) record: ChargeRecord,
    /// The candidates of the limits that were evaluated.
    pub(super) candidates: Vec<Candidate>,
    /// The planned charge of each status, in the same order. Empty unless at least one charge has a
    /// cost that depends on the status code of the response.
    pub(super) conditional: Vec<PlannedCharge>,
}

impl<S: Store> Limiter<S> {
    /// Makes all of `charges` or none, peeks at the limits that are charged later, and records the
    /// charges and the peeks.
    ///
    /// Every decision moves this future in memory. To keep the future small, it stores no value
    /// twice, and rare work is boxed.
    pub(super) async fn evaluate<A: Fn(Receipt) + Copy + Send>(
        &self,
        now: Timestamp,
        id: ChargeId,
        mode: RuleMode,
        charges: Resolved,
        charge_mode: ChargeMode,
        terms: FailureTerms<A>,
    ) -> EvaluationOutcome {
        let planned = match charges {
            Resolved::Charges(planned) => planned,
            Resolved::Blocked(planned, statuses) => {
                let outcome = EvaluationOutcome::blocked(now, statuses);
                self.notify_evaluated(mode, &planned, &outcome.evaluation);
                return outcome;
            }
        };
        let operation = |planned: &PlannedCharge| charge_mode.operation(planned, id, mode);
        let (now, charge_mode, readings) = match terms.queue {
            None => (now, charge_mode, self.apply(now, &planned, operation).await),
            Some(queue) => {
                let queued = Box::pin(self.apply_queued(now, &planned, operation, queue)).await;
                let Answered { at, call, readings } = queued;
                let is_peek = call == Call::Peek;
                (at, if is_peek { ChargeMode::Peek } else { charge_mode }, readings)
            }
        };
        let outcome = self.outcome(now, id, mode, planned, charge_mode, readings);
        if outcome.is_final(terms.on_failure) {
            return outcome;
        }
        Box::pin(self.undo(now, outcome, terms)).await
    }

    /// Returns the outcome of charges for which the store returned `readings`, and notifies the
    /// observer and the tracer.
    pub(super) fn outcome(
        &self,
        now: Timestamp,
        id: ChargeId,
        mode: RuleMode,
        planned: Vec<PlannedCharge>,
        charge_mode: ChargeMode,
        readings: Result<Readings, StoreError>,
    ) -> EvaluationOutcome {
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
        if mode == RuleMode::Shadow {
            record = record.not_enforced();
        }
        if let Some(receipt) = &mut record.receipt {
            receipt.set_charged_at(now);
        }
        EvaluationOutcome { evaluation, source, record, candidates, conditional }
    }

    /// Returns the statuses of `planned` for the `readings` that the store returned, with suggested
    /// waits for concurrency limits.
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

    /// Replaces the content of `evaluation` by the statuses of the charges `planned`. `readings`
    /// has the readings that the store returned for these charges.
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

    /// Notifies the observer and the tracer of `evaluation`, if its limits were enforced.
    fn notify_evaluated(&self, mode: RuleMode, planned: &[PlannedCharge], evaluation: &Evaluation) {
        if mode == RuleMode::Enforce && !planned.is_empty() {
            self.observer.evaluated(planned, evaluation);
            self.tracer.evaluated(&self.key, planned, evaluation);
        }
    }

    /// Refunds the charges of an outcome that is not [final](EvaluationOutcome::is_final). Returns
    /// the outcome that remains: a refusal, or a failure if the answer came from a fallback that
    /// the rules do not allow.
    async fn undo<A: Fn(Receipt) + Copy>(
        &self,
        now: Timestamp,
        mut outcome: EvaluationOutcome,
        terms: FailureTerms<A>,
    ) -> EvaluationOutcome {
        if !outcome.evaluation.is_admitted() {
            let ChargeRecord { receipt, reserved, .. } = std::mem::take(&mut outcome.record);
            // A limit that counts refusals keeps the units of the refused request.
            let undone = receipt.map(Receipt::without_counted_refusals);
            self.refund_together(now, [undone, reserved], terms.abandon).await;
        }
        match outcome.source {
            DecisionSource::Fallback(error) if terms.on_failure != OnFailure::Local => {
                let ChargeRecord { receipt, reserved, .. } = outcome.record;
                self.refund_together(now, [receipt, reserved], terms.abandon).await;
                EvaluationOutcome::failure(now, error)
            }
            _ => outcome,
        }
    }

    /// Refunds `receipts`, which are receipts of one evaluation, in one store call. If the returned
    /// future is dropped, the store still executes this call, and `abandon` receives the receipts.
    async fn refund_together<A: Fn(Receipt) + Copy>(
        &self,
        now: Timestamp,
        receipts: [Option<Receipt>; 2],
        abandon: A,
    ) {
        let mut held = receipts.map(|receipt| HeldReceipt::new(receipt, abandon));
        let receipts = held.each_ref().map(|held| held.receipt.as_ref());
        let refunds: Vec<_> = receipts.iter().flatten().flat_map(|it| it.refunds()).collect();
        if !refunds.is_empty() {
            // If the store does not answer, the charges remain.
            let _ = self.apply_refunds(now, &refunds, &receipts).await;
        }
        for HeldReceipt { receipt, .. } in &mut held {
            *receipt = None;
        }
    }

    /// Charges all limits of `planned` or none in one store call. `id` is the charge id of all
    /// charges.
    pub(super) async fn charge_planned(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        id: ChargeId,
    ) -> Result<Readings, StoreError> {
        self.apply(now, planned, |planned| Operation::Charge { cost: planned.cost, id }).await
    }

    /// Sends one operation for each charge of `planned` to the store, all in one call. `operation`
    /// returns the operation for a charge.
    pub(super) async fn apply(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
        operation: impl Fn(&PlannedCharge) -> Operation,
    ) -> Result<Readings, StoreError> {
        if planned.is_empty() {
            return Ok(Readings::new());
        }
        let charges: Vec<Charge<'_>> = planned
            .iter()
            .map(|planned| {
                let PlannedCharge { limit, subject, .. } = planned;
                Charge { limit, subject, operation: operation(planned) }
            })
            .collect();
        let answer = self.store.apply(now, &charges).await;
        self.notify_holds(&charges, &answer);
        answer
    }
}

impl EvaluationOutcome {
    /// Returns whether the charges of this outcome may stay as they are. If the result is false,
    /// the caller must [undo](Limiter::undo) the charges: a peek refused the request, or a fallback
    /// made the charges although the rules allow no local fallback.
    fn is_final(&self, on_failure: OnFailure) -> bool {
        let is_wanted = on_failure == OnFailure::Local;
        let is_unwanted_fallback = matches!(self.source, DecisionSource::Fallback(_)) && !is_wanted;
        !is_unwanted_fallback && (self.evaluation.is_admitted() || self.record.is_empty())
    }

    /// Returns the decision that reports this outcome, without candidates, overrides and positions.
    pub(super) fn into_decision(
        self,
        policy: Arc<Revision>,
        rules: Vec<Arc<str>>,
        on_failure: OnFailure,
        charge: ChargeOn,
    ) -> Decision {
        let Self { evaluation, source, record, conditional, .. } = self;
        let ChargeRecord { receipt, reserved, pending } = record;
        Decision {
            policy,
            rules,
            evaluation,
            shadow: None,
            candidates: Vec::new(),
            overrides: Vec::new(),
            source,
            is_blocked: false,
            on_failure,
            charge,
            receipt,
            reserved,
            pending,
            positions: ChargePositions::default(),
            conditional,
        }
    }

    fn without_charges(evaluation: Evaluation, source: DecisionSource) -> Self {
        let record = ChargeRecord { receipt: None, reserved: None, pending: None };
        let (candidates, conditional) = (Vec::new(), Vec::new());
        Self { evaluation, source, record, candidates, conditional }
    }

    /// Returns the outcome of an evaluation that neither the store nor a fallback answered.
    fn failure(now: Timestamp, error: StoreError) -> Self {
        let (evaluation, source) =
            (Evaluation::without_statuses(now), DecisionSource::Failure(error));
        Self::without_charges(evaluation, source)
    }

    /// Returns the outcome of a request that overrides block. No charge was made.
    fn blocked(now: Timestamp, statuses: Vec<LimitStatus>) -> Self {
        let (evaluation, source) = (Evaluation { now, statuses }, DecisionSource::DenyCache);
        Self::without_charges(evaluation, source)
    }
}
