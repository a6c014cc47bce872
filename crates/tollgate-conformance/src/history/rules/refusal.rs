//! Checks that only charged units of a window count as used.

use super::super::window::{Sums, Window};
use super::*;

/// Checks the gaps in the used units that no reported charge explains. A gap is valid only if calls
/// with an unknown outcome, sent before the gap was observed, can explain it. A refused call that
/// was charged by mistake also leaves a gap.
pub(super) fn check(case: &mut Case<'_, '_>, window: &Window<'_>) {
    let mut charges: Vec<_> = window.charges.iter().collect();
    charges.sort_by_key(|event| event.used());
    let sums: Vec<_> = charges
        .iter()
        .scan(0, |sum: &mut Units, charge| {
            *sum += charge.counted();
            Some(*sum)
        })
        .collect();
    let may_fill = window.uncertain.iter().map(|event| (event.issued, event.may_count()));
    let may_fill = Sums::new(may_fill);
    for event in window.certain_events() {
        let used = event.start();
        let below = charges.partition_point(|charge| charge.used() <= used);
        let gap = used - below.checked_sub(1).map_or(0, |last| sums[last]);
        let filled = may_fill.before(event.answered);
        if gap > filled {
            let what = format!(
                "{gap} of the {used} units used before it belong to no reported charge; calls \
                 without an answer explain {filled} of them"
            );
            case.violates(Rule::Refusal, what, &[event]);
            return;
        }
    }
}
