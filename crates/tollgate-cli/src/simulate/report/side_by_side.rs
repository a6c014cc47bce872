//! The comparison of the results of two policies, line by line.

use super::super::outcome::{LimitOutcome, Outcome};

/// One count, for both policies. The count of a policy is `None` if the line is about a limit that
/// the policy does not have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) detail: String,
    pub(super) first: Option<u64>,
    pub(super) second: Option<u64>,
}

/// Returns the totals, then the refusals of every limit of either policy that applied to a request.
pub(super) fn lines(first: &Outcome, second: &Outcome) -> Vec<Line> {
    let total = |name: &str, count: fn(&Outcome) -> u64| Line {
        name: name.to_owned(),
        detail: String::new(),
        first: Some(count(first)),
        second: Some(count(second)),
    };
    let mut lines = vec![
        total("requests", |outcome| outcome.counts.requests),
        total("admitted", |outcome| outcome.counts.admitted),
        total("refused", |outcome| outcome.counts.refused),
        total("refunded", |outcome| outcome.counts.refunded),
    ];
    let only_second = second.limits.iter().filter(|limit| find(first, &limit.name).is_none());
    let names = first.limits.iter().chain(only_second).map(|limit| &limit.name);
    lines.extend(names.filter(|name| is_evaluated(first, name) || is_evaluated(second, name)).map(
        |name| {
            let (one, other) = (find(first, name), find(second, name));
            Line {
                name: format!("refused by {name}"),
                detail: rules(one, other),
                first: one.map(|limit| limit.counts.refused),
                second: other.map(|limit| limit.counts.refused),
            }
        },
    ));
    lines
}

/// Returns the description of a limit. `one` and `other` are the results for this limit under the
/// two policies. If the policies define the limit differently, returns both descriptions.
fn rules(one: Option<&LimitOutcome>, other: Option<&LimitOutcome>) -> String {
    match (one, other) {
        (Some(one), Some(other)) if one.rule != other.rule => {
            format!("{}; then {}", one.rule, other.rule)
        }
        (Some(limit), _) | (None, Some(limit)) => limit.rule.clone(),
        (None, None) => String::new(),
    }
}

fn is_evaluated(outcome: &Outcome, name: &str) -> bool {
    find(outcome, name).is_some_and(LimitOutcome::is_evaluated)
}

fn find<'o>(outcome: &'o Outcome, name: &str) -> Option<&'o LimitOutcome> {
    outcome.limits.iter().find(|limit| limit.name == name)
}
