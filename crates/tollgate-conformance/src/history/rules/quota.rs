//! The check that the units of a window that were admitted and not refunded never exceed the quota.

use super::super::holds::Reservation;
use super::super::window::Window;
use super::*;

pub(super) fn check(case: &mut Case<'_, '_>, window: &Window<'_>) {
    let admitted: Units = window.charges.iter().map(Event::granted).sum();
    let maybe_back: Units = window.uncertain.iter().map(Event::refunded).sum();
    let surely_back: Units = window.refunds.iter().map(Event::refunded).sum();
    let last = window.certain_events().max_by_key(|event| event.answered);
    let over =
        |held: &&Reservation<'_>| last.is_some_and(|last| held.may_be_over(last, case.clocks));
    let ran_out: Units = window.holds.iter().filter(over).map(Reservation::units).sum();
    let refunded = surely_back + maybe_back + ran_out;
    let (most, resets_at) = (case.most(), window.resets_at.as_millis());
    if admitted - refunded > most {
        let what =
            format!("{admitted} admitted and {refunded} refunded until {resets_at}, of {most}");
        let last = window.charges.iter().filter(|event| event.granted() > 0);
        let last = last.max_by_key(|event| event.answered);
        case.violates(Rule::Quota, what, last.as_slice());
    }
    // If a fast clock ended a window, the store may delete the window. A caller with a slower clock
    // then opens the window again, with the full quota.
    if window.late - maybe_back - ran_out > most {
        let what = format!("{} admitted late until {resets_at}, of {most}", window.late);
        case.violates(Rule::Quota, what, &[]);
    }
}
