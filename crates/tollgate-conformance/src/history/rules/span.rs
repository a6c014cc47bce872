//! Checks the quota over every span of blocks, times or buckets.

use std::collections::BTreeMap;

use tollgate_core::decide::refundable_until;
use tollgate_core::{ChargePosition, Operation};

use super::super::call::NEVER;
use super::*;

/// Checks that any `span` successive periods together admit at most the quota. A period is a block,
/// a millisecond or a bucket. The position of a charge contains the period of the charge.
pub(super) fn check(case: &mut Case<'_, '_>, span: u64) {
    for epoch in &case.account.epochs {
        let mut periods = BTreeMap::<u64, PeriodUsage<'_, '_>>::new();
        for event in epoch.iter().filter(|event| event.admitted() > 0) {
            let Some(reading) = event.reading() else { continue };
            let expires_at = refundable_until(event.limit, reading.position);
            // If state had ended by the fastest clock, a caller with another clock may have started
            // the state again.
            if case.clocks.latest_before(event.answered) < expires_at {
                let period = periods.entry(reading.position.0).or_default();
                period.units += event.admitted();
                period.last = Some(event);
            }
        }
        for (position, units) in refunded(case) {
            if let Some(period) = periods.get_mut(&position.0) {
                period.units -= units;
            }
        }
        let periods: Vec<_> = periods.into_iter().collect();
        check_places(case, &periods, span);
    }
}

/// Returns the units of each period that were returned or may have been returned by a refund, a
/// settlement or the expiry of a reservation.
fn refunded(case: &Case<'_, '_>) -> Vec<(ChargePosition, Units)> {
    let account = case.account;
    let by_calls = account.events.iter().filter_map(|event| match event.operation {
        Operation::Refund { position, .. } => Some((position, event.refunded())),
        Operation::Settle { id, .. } => Some((account.holds.get(&id)?.position?, event.refunded())),
        _ => None,
    });
    let ran_out = account.holds.values().filter_map(|held| {
        let may_be = held.is_released() && held.may_run_out_from(case.clocks) != NEVER;
        Some((held.position?, held.units())).filter(|_| may_be)
    });
    by_calls.chain(ran_out).collect()
}

/// The units of one period that were not refunded.
#[derive(Default)]
struct PeriodUsage<'e, 'h> {
    units: Units,
    last: Option<&'e Event<'h>>,
}

fn check_places(case: &mut Case<'_, '_>, periods: &[(u64, PeriodUsage<'_, '_>)], span: u64) {
    let (mut sum, mut first) = (0, 0);
    for (number, period) in periods {
        sum += period.units.max(0);
        while periods[first].0.saturating_add(span) <= *number {
            sum -= periods[first].1.units.max(0);
            first += 1;
        }
        if sum > case.most() {
            let (from, most) = (periods[first].0, case.most());
            let what = format!("{sum} admitted in {from} to {number}, of {most}");
            case.violates(Rule::Quota, what, period.last.as_slice());
            return;
        }
    }
}
