//! Checks that every unit of a window is granted to only one caller.

use super::super::window::Window;
use super::*;

pub(super) fn check(case: &mut Case<'_, '_>, window: &Window<'_>) {
    let mut charges: Vec<_> = window.charges.iter().collect();
    charges.sort_by_key(|event| (event.used(), event.issued));
    let mut shared = 0;
    for pair in charges.windows(2) {
        let (one, other) = (pair[0], pair[1]);
        let both = one.used() - other.start();
        shared += both.clamp(0, other.counted());
        if both > 0 && shared > case.lost() {
            let what = format!("two charges were given the same {both} units");
            case.violates(Rule::Interval, what, &[one, other]);
            return;
        }
    }
    if case.lost() > 0 {
        return;
    }
    for sight in &window.sights {
        let used = sight.used();
        let over = charges.partition_point(|charge| charge.used() <= used);
        if let Some(charge) = charges.get(over).filter(|charge| charge.start() < used) {
            let what = format!("{used} used is within one charge: a part of it was observed");
            case.violates(Rule::Interval, what, &[charge, sight]);
            return;
        }
    }
}
