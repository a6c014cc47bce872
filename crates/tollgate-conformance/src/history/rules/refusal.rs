//! Nothing of a window is used that nobody was charged.

use super::super::window::{Sums, Window};
use super::*;

/// Where the charges that were told leave a gap, calls of unknown outcome must fill it, which were
/// asked before the gap was seen. A refused call that was charged all the same leaves one too.
pub(super) fn check(case: &mut Case<'_, '_>, window: &Window<'_>) {
    let mut charges: Vec<_> = window.charges.iter().collect();
    charges.sort_by_key(|event| event.used());
    let told: Vec<_> = charges
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
        let gap = used - below.checked_sub(1).map_or(0, |last| told[last]);
        let filled = may_fill.before(event.answered);
        if gap > filled {
            let what = format!(
                "{gap} of the {used} used before it nobody was told of; {filled} of them may be of \
                 calls without an answer"
            );
            case.violates(Rule::Refusal, what, &[event]);
            return;
        }
    }
}
