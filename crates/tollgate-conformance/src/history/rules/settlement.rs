//! Checks that a settlement refunds at most the reserved units above the actual cost, charges at
//! most the cost beyond the reserved units, and succeeds only once.

use std::collections::BTreeMap;

use tollgate_core::{ChargeId, Operation};

use super::super::event::AnswerSource;
use super::*;

pub(super) fn check(case: &mut Case<'_, '_>) {
    if matches!(case.account.algorithm(), Some(Algorithm::Concurrency(_))) {
        // A settlement releases a permit completely, for any cost.
        return;
    }
    let mut reservations = BTreeMap::<ChargeId, Reservation<'_, '_>>::new();
    for event in &case.account.events {
        match (event.operation, event.answer) {
            (Operation::Reserve { id, .. }, _) => {
                reservations.entry(id).or_default().held += event.may_be_admitted();
            }
            (Operation::Settle { id, .. }, Some((AnswerSource::Store, _, reading)))
                if reading.admission == Admission::Now =>
            {
                reservations.entry(id).or_default().settled.push(event);
            }
            _ => {}
        }
    }
    for Reservation { held, settled } in reservations.into_values() {
        for event in &settled {
            if let Some(what) = beyond(event, held) {
                case.violates(Rule::Settlement, what, &[event]);
            }
        }
        // If a promoted replica had not received a settlement, the same settlement can succeed
        // again on that replica.
        if let [_, .., last] = &settled[..]
            && case.allowance.lost == 0
        {
            let what = format!("one reservation, and {} settlements of it", settled.len());
            case.violates(Rule::Settlement, what, &[last]);
        }
    }
}

/// The reservation with one id: its reserved units, and the settlements that found it.
#[derive(Default)]
struct Reservation<'e, 'h> {
    held: Units,
    settled: Vec<&'e Event<'h>>,
}

/// Returns a description of the error if the settlement `event` refunds or charges too many units.
/// `held` is the number of units that were reserved.
fn beyond(event: &Event<'_>, held: Units) -> Option<String> {
    let Operation::Settle { cost, .. } = event.operation else { return None };
    let reading = event.reading()?;
    let cost = Units::from(cost.get());
    let (refunded, added) = (Units::from(reading.refunded), Units::from(reading.added));
    if refunded > (held - cost).max(0) {
        return Some(format!("{refunded} refunded of {held} reserved, at a cost of {cost}"));
    }
    if added > (cost - held).max(0) {
        return Some(format!("{added} charged beyond {held} reserved, at a cost of {cost}"));
    }
    None
}
