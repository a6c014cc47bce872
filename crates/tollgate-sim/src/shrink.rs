//! Smaller worlds that still fail.

use crate::plan::Plan;
use crate::world::run;

/// Removes nodes, callers and actions from a world that fails, one by one, as long as the smaller
/// world fails too. Returns the smallest world that was found. It fails, and does not fail if any
/// further part is removed.
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

/// Returns the worlds with one node, one caller for each node, or one action less.
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
