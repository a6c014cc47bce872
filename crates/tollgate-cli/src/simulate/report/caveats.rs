//! What a reader should know about the numbers.

use super::super::outcome::{Outcome, Simulation};
use super::number::Count;

/// The sentences that apply.
pub(super) fn caveats(simulation: &Simulation) -> Vec<String> {
    let mut caveats = Vec::new();
    if simulation.late > 0 {
        caveats.push(format!(
            "{} lines were too far out of order to be sorted, and were taken at the time that the log had reached.",
            Count(simulation.late)
        ));
    }
    if simulation.outcome.host_names > 0 {
        caveats.push(format!(
            "{} requests name their client by host name; an address of fd00::/8 that is made of the name stands for it.",
            Count(simulation.outcome.host_names)
        ));
    }
    for outcome in simulation.outcomes() {
        caveats.extend(of_policy(outcome));
    }
    caveats
}

fn of_policy(outcome: &Outcome) -> Vec<String> {
    let policy = &outcome.policy;
    let mut caveats = Vec::new();
    if outcome.unlimited > 0 {
        caveats
            .push(format!("{policy}: no limit speaks of {} requests.", Count(outcome.unlimited)));
    }
    if outcome.undecided > 0 {
        caveats.push(format!(
            "{policy}: for {} requests the store had no room; the policy's `on_failure` decided.",
            Count(outcome.undecided)
        ));
    }
    if outcome.leases_unknown {
        caveats.push(format!(
            "{policy} limits concurrency, and the log tells no durations: every request counts as over at once. \
             With JSON lines, `--field duration_s=KEY` names the key that holds them."
        ));
    }
    if outcome.costs_unknown {
        caveats.push(format!(
            "{policy}: some costs are told by what the log does not hold (fields and bodies of answers, or durations); \
             each counts as what is reserved for it."
        ));
    }
    for limit in outcome.limits.iter().filter(|limit| limit.subjects_forgotten > 0) {
        caveats.push(format!(
            "{policy}: {} had so many subjects that the counts of {} with few requests were given up; decisions and \
             totals are exact.",
            limit.name,
            Count(limit.subjects_forgotten)
        ));
    }
    caveats
}
