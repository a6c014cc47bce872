//! The limitations of a simulation's numbers.

use super::super::outcome::{Outcome, Simulation};
use super::number::Count;

/// Returns the limitations that apply to this simulation.
pub(super) fn caveats(simulation: &Simulation) -> Vec<String> {
    let mut caveats = Vec::new();
    if simulation.late > 0 {
        caveats.push(format!(
            "{} lines were too far out of order to be sorted. They were evaluated at the time that the log had reached.",
            Count(simulation.late)
        ));
    }
    if simulation.outcome.host_names > 0 {
        caveats.push(format!(
            "{} requests have a host name as client. It is replaced by an address in fd00::/8 that is made from the name.",
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
            .push(format!("{policy}: no limit applies to {} requests.", Count(outcome.unlimited)));
    }
    if outcome.ambiguous > 0 {
        caveats.push(format!(
            "{policy}: {} of the refused requests would be answered with 400 and not charged, because services can \
             interpret them in different ways.",
            Count(outcome.ambiguous)
        ));
    }
    if outcome.undecided > 0 {
        caveats.push(format!(
            "{policy}: the store was full for {} requests; the policy's `on_failure` decided them.",
            Count(outcome.undecided)
        ));
    }
    if outcome.leases_unknown {
        caveats.push(format!(
            "{policy} limits concurrency, but the log has no durations: every request ends immediately. \
             With JSON lines, set the key of durations with `--field duration_s=KEY`."
        ));
    }
    if outcome.costs_unknown {
        caveats.push(format!(
            "{policy}: some costs depend on data that the log does not have (headers and bodies of responses, sizes or durations); \
             their reservations count instead."
        ));
    }
    for limit in outcome.limits.iter().filter(|limit| limit.subjects_forgotten > 0) {
        caveats.push(format!(
            "{policy}: {} had so many subjects that the counts of {} with few requests were dropped; decisions and \
             totals are exact.",
            limit.name,
            Count(limit.subjects_forgotten)
        ));
    }
    caveats
}
