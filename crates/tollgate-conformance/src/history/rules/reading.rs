//! The check that the numbers within one answer are consistent.

use tollgate_core::{
    Admission, Cost, DecisionSource, MAX_RESERVATIONS, Operation, Reading, Refusals,
};

use super::super::event::{AnswerSource, Decision};
use super::*;

/// Checks that an answered call has one reading for each charge.
pub(super) fn check_count(report: &mut Report, number: usize, call: &Call) {
    let Outcome::Answered(readings) = &call.outcome else { return };
    let (is, should) = (readings.len(), call.charges.len());
    if is == should || matches!(readings.source(), DecisionSource::Failure(_)) {
        return;
    }
    let Some(charge) = call.charges.first() else { return };
    report.add(Violation {
        rule: Rule::Reading,
        limit: charge.limit.name().to_owned(),
        subject: charge.subject.to_string(),
        what: format!("{is} readings of {should} charges"),
        events: vec![format!("call {number}")],
    });
}

pub(super) fn check(case: &mut Case<'_, '_>) {
    for event in &case.account.events {
        let Some((source, decision, reading)) = event.answer else { continue };
        let mistake = match event.operation {
            Operation::Charge { cost, .. }
            | Operation::Reserve { cost, .. }
            | Operation::Peek { cost } => of_verdict(case, event, source, reading, cost),
            Operation::Refund { .. } | Operation::Renew { .. } | Operation::Reset => None,
            Operation::Extend { .. } | Operation::Settle { .. } => None,
        };
        let mistake = mistake
            .or_else(|| of_used(case, event, source, reading))
            .or_else(|| of_memory(event, source, decision));
        if let Some(what) = mistake {
            case.violates(Rule::Reading, what, &[event]);
        }
    }
}

/// Checks that the remaining units and the decision agree. Temporary charges are excepted, because
/// other calls may charge units between the decision and the reading.
fn of_verdict(
    case: &Case<'_, '_>,
    event: &Event<'_>,
    source: AnswerSource,
    reading: &Reading,
    cost: Cost,
) -> Option<String> {
    let (capacity, needed) = (Units::from(event.limit.capacity()), Units::from(cost.needed()));
    let used = Units::from(reading.used);
    let (left, held) = (capacity - used, Units::from(case.allowance.held));
    let by_store = source == AnswerSource::Store;
    // A reservation must fit both the remaining units of the limit and the bound of the reserved
    // units.
    if reading.admission != Admission::Now && has_no_room_to_hold(event, reading) {
        return None;
    }
    match reading.admission {
        Admission::Now if used < event.admitted() => {
            Some(format!("{used} used after {} were admitted", event.admitted()))
        }
        Admission::Now if by_store && left + event.counted() + held < needed => {
            Some(format!("{needed} are admitted, but {} of {capacity} are used", event.start()))
        }
        Admission::At(_) | Admission::Never if left >= needed => {
            Some(format!("{needed} are refused, but {left} of {capacity} are left"))
        }
        Admission::At(ready_at) if by_store && ready_at <= event.now => Some(format!(
            "the charge is admitted from {}, which is in the past",
            ready_at.as_millis()
        )),
        Admission::At(_) if by_store && needed > capacity => {
            Some(format!("{needed} are admitted later, but the capacity is {capacity}"))
        }
        Admission::Never if by_store && needed <= capacity => {
            Some(format!("{needed} are never admitted, but the capacity is {capacity}"))
        }
        Admission::Now | Admission::At(_) | Admission::Never => None,
    }
}

/// Returns whether the event may be refused because the subject has too many reserved units.
fn has_no_room_to_hold(event: &Event<'_>, reading: &Reading) -> bool {
    let Operation::Reserve { cost, .. } = event.operation else { return false };
    let at_most = event.limit.reservation_terms().at_most;
    let room = at_most.saturating_sub(reading.reserved);
    // Each reservation has at least one unit.
    cost.get() > room || reading.reserved >= MAX_RESERVATIONS as u64
}

/// Checks that the used units do not exceed the capacity. If the limit counts refusals, the used
/// units may exceed the capacity.
///
/// A two-bucket estimate depends on the caller's clock. If the clock is behind, both buckets count
/// in full.
fn of_used(
    case: &Case<'_, '_>,
    event: &Event<'_>,
    source: AnswerSource,
    reading: &Reading,
) -> Option<String> {
    let lags = case.clocks.latest_before(event.answered) > event.now;
    let buckets = match event.limit.algorithm() {
        Algorithm::TwoBucket(_) if lags => 2,
        _ => 1,
    };
    let capacity = Units::from(case.account.limit.capacity()) * buckets;
    let most = capacity + case.overdraft();
    let counts = event.limit.refusals() == Refusals::Counted || source == AnswerSource::Fallback;
    let passes = !counts && Units::from(reading.used) > most;
    passes.then(|| format!("{} used of {most}", reading.used))
}

/// Checks that an answer from a node's deny cache is a refusal.
fn of_memory(event: &Event<'_>, source: AnswerSource, decision: Decision) -> Option<String> {
    let admits =
        source == AnswerSource::Memory && decision == Decision::Admitted && event.requested() > 0;
    admits.then(|| "admitted without a call to the store".to_owned())
}
