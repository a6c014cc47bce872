//! Smaller worlds that still fail.

use crate::plan::Plan;
use crate::world::run;

/// Removes actions from a world that fails, one by one, as long as it fails. Returns the world with
/// the actions that are left, all of which it needs to fail.
#[must_use]
pub fn shrink(plan: &Plan) -> Plan {
    let mut smallest = plan.clone();
    loop {
        let before = smallest.actions.len();
        for place in (0..before).rev() {
            let mut smaller = smallest.clone();
            smaller.actions.remove(place);
            if !run(&smaller, false).violations.is_empty() {
                smallest = smaller;
            }
        }
        if smallest.actions.len() == before {
            return smallest;
        }
    }
}
