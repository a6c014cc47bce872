//! A window in which units were given back, or held for a while: what is used lies between sums.

use super::super::window::{Sums, Window};
use super::*;

/// What was told before an answer was asked for is in it, and what was asked before the answer was
/// there may be.
pub(super) fn check(case: &mut Case<'_, '_>, window: &Window<'_>) {
    let Window { charges, refunds, uncertain, .. } = window;
    let surely_charged = Sums::new(charges.iter().map(|event| (event.answered, event.counted())));
    let surely_back = Sums::new(refunds.iter().map(|event| (event.answered, event.given_back())));
    let maybe = |event: &Event<'_>| (event.issued, event.may_count());
    let maybe_charged = Sums::new(charges.iter().chain(uncertain).map(maybe));
    let maybe = |event: &Event<'_>| (event.issued, event.given_back());
    let maybe_back = Sums::new(refunds.iter().chain(uncertain).map(maybe));
    let all = || case.account.events.iter();
    let begun = Sums::new(all().map(|event| (event.issued, event.held())));
    let ended = Sums::new(all().map(|event| (event.answered, event.held())));
    for event in window.all_told() {
        let own_back = event.given_back();
        let least = surely_charged.before(event.issued) - maybe_back.before(event.answered);
        let least = least + event.counted() - case.lost();
        let most = maybe_charged.before(event.answered) - surely_back.before(event.issued);
        let held = begun.before(event.answered) - ended.before(event.issued);
        let held = held.min(Units::from(case.allowance.held));
        let most = most - own_back + held + Units::from(case.allowance.stranded);
        if event.used() < least {
            let what = format!("{} used, where at least {least} must be", event.used());
            case.violates(Rule::Order, what, &[event]);
            return;
        }
        if event.used() > most {
            let what = format!("{} used, where at most {most} can be", event.used());
            case.violates(Rule::Refusal, what, &[event]);
            return;
        }
    }
}
