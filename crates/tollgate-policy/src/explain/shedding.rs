//! Describes the load shedding of a policy in words, for `tollgate check`.

use tollgate_core::Policy;
use tollgate_core::policy::shedding::{
    AdaptiveAlgorithm, FleetShedding, InFlightBound, ShedMode, WorkerShedding,
};

/// Returns one row for each shedder of the policy, with a title and a description.
pub(crate) fn rows(policy: &Policy) -> Vec<(&'static str, String)> {
    let shedding = policy.shedding();
    let fleet = shedding.fleet.map(|it| ("fleet", fleet(policy, &it) + mode(it.mode)));
    let worker = shedding.worker.map(|it| ("worker", worker(&it) + mode(it.mode)));
    let all = match shedding.mode {
        ShedMode::Enforce => None,
        ShedMode::Shadow => Some(("all", "counted, never refused".to_owned())),
        ShedMode::Off => Some(("all", "off".to_owned())),
    };
    [fleet, worker, all].into_iter().flatten().collect()
}

fn fleet(policy: &Policy, fleet: &FleetShedding) -> String {
    let capacity = |index: usize| policy.limits().get(index).map_or(0, |it| it.limit.capacity());
    let (all, others) = (capacity(fleet.pool), capacity(fleet.noncritical));
    let reserved = all.saturating_sub(others);
    format!(
        "at most {all} requests in flight on all nodes, {reserved} of them kept for critical requests"
    )
}

fn worker(worker: &WorkerShedding) -> String {
    let in_flight = worker.in_flight.map(|bound| match bound {
        InFlightBound::Fixed(bound) => format!("at most {bound} requests in flight"),
        InFlightBound::Adaptive(bound) => {
            let how = match bound.algorithm {
                AdaptiveAlgorithm::Gradient => "by the gradient of latency".to_owned(),
                AdaptiveAlgorithm::Aimd { timeout } => {
                    format!("by AIMD, responses within {timeout}")
                }
            };
            format!("{} to {} requests in flight, {how}", bound.min, bound.max)
        }
    });
    let queue = worker.queue_delay.map(|delay| format!("queueing delay at most {delay}"));
    let late = worker.loop_delay.map(|delay| format!("task delay at most {delay}"));
    [in_flight, queue, late].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

const fn mode(mode: ShedMode) -> &'static str {
    match mode {
        ShedMode::Enforce => "",
        ShedMode::Shadow => " (shadow)",
        ShedMode::Off => " (off)",
    }
}
