//! The store: memory, or shards and the lanes to their servers.

use std::time::Duration;

use tollgate::store::Memory;
use tollgate_backend::{Backend, Counts, LaneStatus, ShardStatus};
use tollgate_server::metrics::{Exposition, Family};

use super::families::{
    CALLS, CIRCUIT, CIRCUIT_OPENED, CLOCK_OFFSET, CLOCK_SKEW, CLOCK_STEPS, DISCARDED, JOBS,
    MEMORY_BYTES, MEMORY_DISCARDED, MEMORY_ENTRIES, MEMORY_EVICTED, MEMORY_FULL, MEMORY_REFUNDS,
    MEMORY_SWEPT, MISSED, OVERLOADED, REMEMBERED, RETRIES, SHARD_UP, STOOD_IN, STRANDED,
    UNANSWERED, UNKNOWN, WINDOWS_LOST,
};

/// The states of a circuit, as they are called in the status.
const STATES: [&str; 3] = ["closed", "seeking", "open"];

pub(super) fn write(page: &mut Exposition, store: &Backend) {
    if let Backend::Memory(memory) = store {
        write_memory(page, memory);
    }
    if let Backend::Redis(fleet) = store {
        counts(page, &fleet.counts());
    }
    let status = store.status();
    shards(page, &status);
    lanes(page, &status);
}

fn write_memory(page: &mut Exposition, memory: &Memory) {
    let stats = memory.stats();
    for (family, value) in [
        (&MEMORY_ENTRIES, stats.entries as u64),
        (&MEMORY_REFUNDS, stats.refunds as u64),
        (&MEMORY_BYTES, stats.bytes as u64),
        (&MEMORY_EVICTED, stats.evicted),
        (&MEMORY_SWEPT, stats.swept),
        (&MEMORY_DISCARDED, stats.discarded),
        (&MEMORY_FULL, stats.full),
    ] {
        page.family(family, [([""; 0], value)]);
    }
}

fn counts(page: &mut Exposition, counts: &Counts) {
    for (family, value) in [
        (&REMEMBERED, counts.remembered),
        (&STOOD_IN, counts.stood_in),
        (&UNANSWERED, counts.unanswered),
        (&MISSED, counts.missed),
        (&STRANDED, counts.stranded),
        (&DISCARDED, counts.discarded),
    ] {
        page.family(family, [([""; 0], value)]);
    }
}

fn shards(page: &mut Exposition, shards: &[ShardStatus]) {
    let up = |shard: &ShardStatus| u8::from(shard.primary().is_some());
    page.family(&SHARD_UP, shards.iter().map(|shard| ([&*shard.name], up(shard))));
    let offsets = shards.iter().filter_map(|shard| {
        let offset = shard.clock_offset?.millis;
        let sign = if offset < 0 { "-" } else { "" };
        let seconds = Duration::from_millis(offset.unsigned_abs()).as_secs_f64();
        Some(([&*shard.name], format!("{sign}{seconds}")))
    });
    page.family(&CLOCK_OFFSET, offsets);
    let skews = shards.iter().map(|shard| ([&*shard.name], shard.skew().as_secs_f64()));
    page.family(&CLOCK_SKEW, skews);
    page.family(&WINDOWS_LOST, shards.iter().map(|shard| ([&*shard.name], shard.windows_lost)));
}

fn lanes(page: &mut Exposition, shards: &[ShardStatus]) {
    let lanes: Vec<_> = shards
        .iter()
        .flat_map(|shard| {
            let named = |(place, lane)| (&*shard.name, lane_name(place), lane);
            shard.lanes.iter().enumerate().map(named)
        })
        .collect();
    let circuits = lanes.iter().flat_map(|(shard, name, lane)| {
        let gate = format!("{:?}", lane.gate).to_lowercase();
        STATES.map(|state| ([*shard, &**name, state], u8::from(state == gate)))
    });
    page.family(&CIRCUIT, circuits);
    let mut counters = |family: &Family, value: fn(&LaneStatus) -> u64| {
        let samples = lanes.iter().map(|(shard, name, lane)| ([*shard, &**name], value(lane)));
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
fn lane_name(place: usize) -> String {
    match place {
        0 => "primary".to_owned(),
        replica => format!("replica-{replica}"),
    }
}
