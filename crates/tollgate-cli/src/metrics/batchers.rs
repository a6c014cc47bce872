//! Metrics of the connections to the servers of shards.

use tollgate_backend::{BatcherStatus, ShardStatus};
use tollgate_redis::CircuitState;
use tollgate_server::metrics::{Exposition, Family};

use super::families::{
    CALLS, CIRCUIT, CIRCUIT_OPENED, CLOCK_STEPS, JOBS, OVERLOADED, RETRIES, UNKNOWN,
};
use super::per_store::PerStore;

/// The states of a circuit breaker.
const STATES: [CircuitState; 3] = [CircuitState::Closed, CircuitState::Seeking, CircuitState::Open];

pub(super) fn write(page: &mut Exposition, shards: &[PerStore<ShardStatus>]) {
    let batchers: Vec<_> = shards
        .iter()
        .flat_map(|(side, shard)| {
            let named = |(index, batcher)| (*side, &*shard.name, name(index), batcher);
            shard.batchers.iter().enumerate().map(named)
        })
        .collect();
    let circuits = batchers.iter().flat_map(|(side, shard, name, batcher)| {
        STATES.map(|state| {
            (
                [*side, *shard, &**name, circuit_breaker(state)],
                u8::from(state == batcher.circuit_state),
            )
        })
    });
    page.family(&CIRCUIT, circuits);
    let mut counters = |family: &Family, value: fn(&BatcherStatus) -> u64| {
        let samples = batchers
            .iter()
            .map(|(side, shard, name, batcher)| ([*side, *shard, &**name], value(batcher)));
        page.family(family, samples);
    };
    counters(&CIRCUIT_OPENED, |batcher| batcher.opened);
    counters(&CLOCK_STEPS, |batcher| batcher.clock_steps);
    counters(&CALLS, |batcher| batcher.counts.calls);
    counters(&JOBS, |batcher| batcher.counts.jobs);
    counters(&RETRIES, |batcher| batcher.counts.late);
    counters(&OVERLOADED, |batcher| batcher.counts.overloaded);
    counters(&UNKNOWN, |batcher| batcher.counts.timed_out);
}

/// Returns the name of a circuit breaker's state in metrics and in the status.
pub(crate) const fn circuit_breaker(circuit_state: CircuitState) -> &'static str {
    match circuit_state {
        CircuitState::Closed => "closed",
        CircuitState::Seeking => "half_open",
        CircuitState::Open => "open",
    }
}

/// Returns the name of a connection. The first connection leads to the primary. The others lead to
/// replicas, in the order of the settings.
fn name(index: usize) -> String {
    match index {
        0 => "primary".to_owned(),
        replica => format!("replica-{replica}"),
    }
}
