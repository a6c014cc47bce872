//! Evaluates the charges of a plan: applies overrides to them, sends the remaining charges to the
//! store in one call, and records the charges that the store made.

use std::sync::Arc;

use tollgate_core::charge::{Charge, ChargeId, ChargePosition, Operation};
use tollgate_core::policy::{ChargeOn, OnFailure, PlannedCharge, Queue, RuleMode};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{
    Admission, Evaluation, Limit, LimitStatus, Reading, Readings, Store, StoreError, Subject,
    Timestamp,
};

use super::Limiter;
use super::candidate::Candidate;
use super::charge_mode::{Action, ChargeMode};
use super::queue::{Answered, Call};
use crate::decision::{AppliedOverride, ChargePositions, Decision, Evaluated, Pending};
use crate::overrides::{MAX_OVERRIDE_DURATION, NEVER, Overrides, ResolvedOverride};
use crate::receipt::{Purpose, Receipt};
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
                    // A client cannot wait for the end of an override that has no end.
                    let until =
                        if until == NEVER { now.after(MAX_OVERRIDE_DURATION) } else { until };
                    statuses.push(blocked_until(until, &one));
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

/// Returns the status of a charge on a subject that an override blocks. The status reports the
/// whole quota as used until the override expires.
fn blocked_until(until: Timestamp, planned: &PlannedCharge) -> LimitStatus {
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
/// answer, and how long the request waits if only a free slot of a concurrency limit is missing.
#[derive(Clone, Copy)]
pub(super) struct FailureTerms {
    pub(super) on_failure: OnFailure,
    pub(super) queue: Option<Queue>,
}

impl FailureTerms {
    /// The terms of charges that cannot reject a request. The request does not wait for a slot.
    /// Charges that a fallback made are kept.
    pub(super) const COUNTED: Self = Self { on_failure: OnFailure::Local, queue: None };
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
        let operation = |planned: &PlannedCharge| charge_mode.operation(planned, id);
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
        Box::pin(self.undo(now, outcome, terms.on_failure)).await
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
    async fn undo(
        &self,
        now: Timestamp,
        mut outcome: EvaluationOutcome,
        on_failure: OnFailure,
    ) -> EvaluationOutcome {
        if !outcome.evaluation.is_admitted() {
            let ChargeRecord { receipt, reserved, .. } = std::mem::take(&mut outcome.record);
            // A limit that counts refusals keeps the units of the refused request.
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

/// The charges and the reservations that a store call made for a request, and the charges that are
/// to be made later.
#[derive(Default)]
pub(super) struct ChargeRecord {
    /// The receipt of the charges. In [`ChargeMode::Reserve`], the receipt of the reservation.
    pub(super) receipt: Option<Receipt>,
    /// The receipt of the units that are reserved until the response reports its cost.
    pub(super) reserved: Option<Receipt>,
    /// The charges whose limits were only peeked at, to be made later.
    pub(super) pending: Option<Pending>,
}

impl ChargeRecord {
    /// Returns the record of the charges `planned`, for which the store returned `readings`. The
    /// record is empty if the store refused the charges.
    pub(super) fn of(
        id: ChargeId,
        mode: ChargeMode,
        planned: Vec<PlannedCharge>,
        readings: &Readings,
    ) -> Self {
        // The store makes all charges or none, independently of the results of the peeks.
        let mut read = planned.iter().zip(readings.iter());
        if !read.all(|(one, reading)| {
            mode.action(one) == Action::Peek || reading.admission == Admission::Now
        }) {
            return Self::default();
        }
        let is_charged = |planned: &PlannedCharge| mode.action(planned) == Action::Charge;
        let positions = readings.iter().map(|reading| reading.position);
        if planned.iter().all(is_charged) {
            // In the most frequent case every limit was charged, so there is nothing to separate.
            let receipt = receipt(id, Purpose::Charge, planned.into_iter().zip(positions));
            return Self { receipt, ..Self::default() };
        }
        let (mut charged, mut reserved, mut peeked) = (Vec::new(), Vec::new(), Vec::new());
        let mut held_until = None;
        for (planned, position) in planned.into_iter().zip(positions) {
            match mode.action(&planned) {
                Action::Peek => peeked.push(planned),
                Action::Charge => charged.push((planned, position)),
                Action::Reserve(until) => {
                    held_until = Some(until);
                    reserved.push((planned, position));
                }
            }
        }
        let reserved = held_until
            .and_then(|until| receipt(id, Purpose::Reservation(until), reserved.into_iter()));
        let receipt = receipt(id, Purpose::Charge, charged.into_iter());
        let pending = Pending::new(peeked);
        match mode {
            // The caller asked for the reservation, and will settle the reservation.
            ChargeMode::Reserve(_) => Self { receipt: reserved, reserved: None, pending },
            ChargeMode::Charge(_)
            | ChargeMode::Metered(..)
            | ChargeMode::Refused
            | ChargeMode::RefusedMetered
            | ChargeMode::Peek => Self { receipt, reserved, pending },
        }
    }

    /// Returns whether the record has no charges, no reservations and no charges to make later.
    pub(super) const fn is_empty(&self) -> bool {
        self.receipt.is_none() && self.reserved.is_none() && self.pending.is_none()
    }
}

/// Returns the receipt of `charged` for the given `purpose`, or `None` if `charged` has no charge
/// with a cost.
fn receipt(
    id: ChargeId,
    purpose: Purpose,
    charged: impl Iterator<Item = (PlannedCharge, ChargePosition)>,
) -> Option<Receipt> {
    let receipt = Receipt::new(id, purpose, charged);
    (!receipt.is_empty()).then_some(receipt)
}
