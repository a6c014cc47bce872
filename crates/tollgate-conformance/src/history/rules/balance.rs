//! The check of windows with refunds or temporary charges. The used units must be between two sums.

use super::super::window::{Sums, Window};
use super::*;

/// Checks that each answer includes all calls that were answered before its request was sent, and
/// no calls that were sent after the answer arrived.
pub(super) fn check(case: &mut Case<'_, '_>, window: &Window<'_>) {
    let Window { charges, refunds, uncertain, .. } = window;
    let surely_charged = Sums::new(charges.iter().map(|event| (event.answered, event.counted())));
    let surely_back = Sums::new(refunds.iter().map(|event| (event.answered, event.refunded())));
    let maybe = |event: &Event<'_>| (event.issued, event.may_count());
    let maybe_charged = Sums::new(charges.iter().chain(uncertain).map(maybe));
    let maybe = |event: &Event<'_>| (event.issued, event.refunded());
    let maybe_back = Sums::new(refunds.iter().chain(uncertain).map(maybe));
    let all = || case.account.events.iter();
    let begun = Sums::new(all().map(|event| (event.issued, event.held())));
    let ended = Sums::new(all().map(|event| (event.answered, event.held())));
    for event in window.certain_events() {
        let own_back = event.refunded();
        let least = surely_charged.before(event.issued) - maybe_back.before(event.answered);
        let least = least + event.counted() - case.lost();
        let most = maybe_charged.before(event.answered) - surely_back.before(event.issued);
        let (ran_out, may_have_run_out) = run_out(case, window, event);
        let (least, most) = (least - may_have_run_out, most - ran_out);
        let held = begun.before(event.answered) - ended.before(event.issued);
        let held = held.min(Units::from(case.allowance.held));
        let most = most - own_back + held + Units::from(case.allowance.unrefunded);
        if event.used() < least {
            let what = format!("{} used, but at least {least} must be", event.used());
            case.violates(Rule::Order, what, &[event]);
            return;
        }
        if event.used() > most {
            let what = format!("{} used, but at most {most} can be", event.used());
            case.violates(Rule::Refusal, what, &[event]);
            return;
        }
    }
}

/// Returns two sums of units of expired reservations: the units that must be released for `event`,
/// and the units that may be released. Neither sum includes reservations that were made after the
/// answer to `event`.
fn run_out(case: &Case<'_, '_>, window: &Window<'_>, event: &Event<'_>) -> (Units, Units) {
    let (mut surely, mut maybe) = (0, 0);
    for held in &window.holds {
        if held.reserved_by.issued < event.answered && held.is_over(event) {
            surely += held.units();
        }
        // If no answer to the reservation arrived, its units are not in the sum of units that must
        // be used, so the reservation need not be released either.
        if held.reserved_by.answered < event.issued
            && held.reserved_by.answer.is_some()
            && held.may_be_over(event, case.clocks)
        {
            maybe += held.units();
        }
    }
    (surely, maybe)
}
