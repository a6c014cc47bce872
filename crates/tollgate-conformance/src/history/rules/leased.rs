//! The check of a window of a leased limit. Nodes take units of the window in advance, and other
//! nodes report the unused leased units as used.
//!
//! A node reports the units that the store counted at the node's last call, minus the node's own
//! unused units. Two answers can therefore contain the same number, and a later answer can contain
//! a lower number. However, no number exceeds the units that were charged until the answer plus the
//! unused units of other nodes. A refusal comes from the store, and its used units include every
//! refund that was answered before the request. The used units of a refusal therefore show whether
//! the refusal came too early.

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
                "{} used, but {known} were charged and nodes have at most {beside}",
                event.used()
            );
            case.violates(Rule::Lease, what, &[event]);
            return;
        }
    }
}
