//! The ways to the servers of shards.

use tollgate_backend::{LaneStatus, ShardStatus};
use tollgate_server::metrics::{Exposition, Family};

use super::families::{
    CALLS, CIRCUIT, CIRCUIT_OPENED, CLOCK_STEPS, JOBS, OVERLOADED, RETRIES, UNKNOWN,
};
use super::sided::Sided;

/// The states of a circuit, as they are called in the status.
const STATES: [&str; 3] = ["closed", "seeking", "open"];

pub(super) fn write(page: &mut Exposition, shards: &[Sided<ShardStatus>]) {
    let lanes: Vec<_> = shards
        .iter()
        .flat_map(|(side, shard)| {
            let named = |(place, lane)| (*side, &*shard.name, name(place), lane);
            shard.lanes.iter().enumerate().map(named)
        })
        .collect();
    let circuits = lanes.iter().flat_map(|(side, shard, name, lane)| {
        let gate = format!("{:?}", lane.gate).to_lowercase();
        STATES.map(|state| ([*side, *shard, &**name, state], u8::from(state == gate)))
    });
    page.family(&CIRCUIT, circuits);
    let mut counters = |family: &Family, value: fn(&LaneStatus) -> u64| {
        let samples =
            lanes.iter().map(|(side, shard, name, lane)| ([*side, *shard, &**name], value(lane)));
        page.family(family, samples);
    };
    counters(&CIRCUIT_OPENED, |lane| lane.opened);
    counters(&CLOCK_STEPS, |lane| lane.clock_steps);
    counters(&CALLS, |lane| lane.counts.calls);
    counters(&JOBS, |lane| lane.counts.jobs);
    counters(&RETRIES, |lane| lane.counts.late);
    counters(&OVERLOADED, |lane| lane.counts.overloaded);
    counters(&UNKNOWN, |lane| lane.counts.timed_out);
}

/// The first leads to the primary; the others to replicas, in the order of the settings.
fn name(place: usize) -> String {
    match place {
        0 => "primary".to_owned(),
        replica => format!("replica-{replica}"),
    }
}
