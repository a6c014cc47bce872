//! An answer agrees with itself.

use tollgate_core::{
    Admission, Cost, DecisionSource, MAX_RESERVATIONS, Operation, Reading, Refusals,
};

use super::super::event::{AnswerSource, Decision};
use super::*;

/// Whether an answered call has one reading for each charge.
pub(super) fn check_count(report: &mut Report, number: usize, call: &Call) {
    let Outcome::Answered(readings) = &call.outcome else { return };
    let (is, should) = (readings.len(), call.charges.len());
    if is == should || matches!(readings.source(), DecisionSource::Failure(_)) {
        return;
    }
    let Some(asked) = call.charges.first() else { return };
    report.add(Violation {
        rule: Rule::Reading,
        limit: asked.limit.name().to_owned(),
        subject: asked.subject.to_string(),
        what: format!("{is} readings of {should} charges"),
        events: vec![format!("call {number}")],
    });
}

pub(super) fn check(case: &mut Case<'_, '_>) {
    for event in &case.account.events {
        let Some((source, decision, reading)) = event.told else { continue };
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

/// Whether what is left and the evaluation say the same. What was held and given back fitted before
/// others took, and is told as it stood after.
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
    // Of a reservation what is left of the limit is one half; the other is what may be held.
    if reading.admission != Admission::Now && has_no_room_to_hold(event, reading) {
        return None;
    }
    match reading.admission {
        Admission::Now if used < event.admitted() => {
            Some(format!("{used} used after {} were admitted", event.admitted()))
        }
        Admission::Now if by_store && left + event.counted() + held < needed => {
            Some(format!("{needed} fit, it says, where {} of {capacity} are used", event.start()))
        }
        Admission::At(_) | Admission::Never if left >= needed => {
            Some(format!("{needed} do not fit, it says, where {left} of {capacity} are left"))
        }
        Admission::At(ready_at) if by_store && ready_at <= event.now => {
            Some(format!("it fits at {}, it says, which is past", ready_at.as_millis()))
        }
        Admission::At(_) if by_store && needed > capacity => {
            Some(format!("{needed} fit later, it says, where {capacity} is all there ever is"))
        }
        Admission::Never if by_store && needed <= capacity => {
            Some(format!("{needed} never fit, it says, where {capacity} is all there is"))
        }
        Admission::Now | Admission::At(_) | Admission::Never => None,
    }
}

/// Whether so much is held already that a reservation beside it may not be.
fn has_no_room_to_hold(event: &Event<'_>, reading: &Reading) -> bool {
    let Operation::Reserve { cost, .. } = event.operation else { return false };
    let at_most = event.limit.reservation_terms().at_most;
    let room = at_most.saturating_sub(reading.reserved);
    // Each reservation holds a unit at least.
    cost.get() > room || reading.reserved >= MAX_RESERVATIONS as u64
}

/// Whether no more is used than there is; refusals that count may pass it.
///
/// Two buckets are estimated at the caller's time: for a clock that lags behind the bucket both
/// weigh whole.
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

/// A node remembers refusals alone.
fn of_memory(event: &Event<'_>, source: AnswerSource, decision: Decision) -> Option<String> {
    let admits =
        source == AnswerSource::Memory && decision == Decision::Admitted && event.asked() > 0;
    admits.then(|| "admitted without asking the store".to_owned())
}
