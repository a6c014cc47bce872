//! A window of which nodes take parts in advance: what they have and do not use, others see used.
//!
//! A node tells what the store counted when it was asked last, less what the node itself has unused.
//! So two may be told the same number, and a later one may be lower; but none is higher than what was
//! charged by then and what other nodes have. A refusal is the store's, which has heard of every
//! refund that was told before: how early it may be follows from what it says is used.

use super::super::window::{Sums, Window};
use super::*;

pub(super) fn check(case: &mut Case<'_, '_>, window: &Window<'_>) {
    let Window { charges, refunds, uncertain, .. } = window;
    let may_count = |event: &Event<'_>| (event.issued, event.may_count());
    let charged = Sums::new(charges.iter().chain(uncertain).map(may_count));
    let back = Sums::new(refunds.iter().map(|event| (event.answered, event.refunded())));
    let beside = case.leased() + Units::from(case.allowance.held + case.allowance.unrefunded);
    for event in window.certain_events() {
        let is_refused = event.reading().is_some_and(|reading| reading.admission != Admission::Now);
        let gone = if is_refused { back.before(event.issued) } else { 0 };
        let known = charged.before(event.answered) - gone;
        if event.used() > known + beside {
            let what = format!(
                "{} used, where {known} were charged and nodes have {beside} at most",
                event.used()
            );
            case.violates(Rule::Lease, what, &[event]);
            return;
        }
    }
}
