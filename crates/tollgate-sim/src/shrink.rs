//! Reduces a world that fails to a smaller one that still fails.

use crate::plan::Plan;
use crate::world::run;

/// Removes nodes, callers and actions from a world that fails, one at a time, as long as the
/// smaller world fails in the same way: one of its violations has the text of the first violation
/// of `plan`, apart from the numbers. Returns the smallest world that was found. That world no
/// longer fails in this way if one more node, caller or action is removed.
#[must_use]
pub fn shrink(plan: &Plan) -> Plan {
    let symptoms =
        |plan: &Plan| run(plan, false).violations.into_iter().map(|it| without_numbers(&it));
    let Some(symptom) = symptoms(plan).next() else { return plan.clone() };
    let fails = |plan: &Plan| symptoms(plan).any(|other| other == symptom);
    let mut smallest = plan.clone();
    loop {
        let smaller = smaller_than(&smallest).find(fails);
        let Some(smaller) = smaller else { return smallest };
        smallest = smaller;
    }
}

/// Returns `text` without its digits.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|char| !char.is_ascii_digit()).collect()
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
