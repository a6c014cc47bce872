//! Reduces a world that fails to a smaller one that still fails.

use crate::plan::Plan;
use crate::world::run;

/// Removes nodes, callers and actions from a world that fails, one at a time, as long as the
/// smaller world fails too. Returns the smallest world that was found. That world fails, and it no
/// longer fails if one more node, caller or action is removed.
#[must_use]
pub fn shrink(plan: &Plan) -> Plan {
    let fails = |plan: &Plan| !run(plan, false).violations.is_empty();
    let mut smallest = plan.clone();
    loop {
        let smaller = smaller_than(&smallest).find(fails);
        let Some(smaller) = smaller else { return smallest };
        smallest = smaller;
    }
}

/// Returns the worlds that have one node, one caller per node, or one action less than `plan`.
fn smaller_than(plan: &Plan) -> impl Iterator<Item = Plan> {
    let nodes = (0..plan.nodes).filter_map(|node| plan.without_node(node));
    let callers = (plan.callers > 1).then(|| Plan { callers: plan.callers - 1, ..plan.clone() });
    let actions = (0..plan.actions.len()).rev().map(|place| {
        let mut smaller = plan.clone();
        smaller.actions.remove(place);
        smaller
    });
    nodes.chain(callers).chain(actions)
}
