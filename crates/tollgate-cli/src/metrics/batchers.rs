//! Metrics of the connections to the servers of shards.

use std::iter;

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
            names(shard)
                .into_iter()
                .zip(&shard.batchers)
                .map(|(server, batcher)| (*side, &*shard.name, server, batcher))
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

/// Returns the names of the connections of `shard`. The first connection leads to the primary. The
/// others lead to replicas, in the order of the settings. In a Redis Cluster, the primaries are
/// numbered in the order of their first slots, and each has replicas of its own.
fn names(shard: &ShardStatus) -> Vec<String> {
    let of_group = |primary: String, prefix: &str, servers: usize| -> Vec<String> {
        let replicas = (1..servers).map(|replica| format!("{prefix}replica-{replica}"));
        iter::once(primary).chain(replicas).take(servers).collect()
    };
    let Some(cluster) = &shard.cluster else {
        return of_group("primary".to_owned(), "", shard.batchers.len());
    };
    let groups = (1..).zip(&cluster.groups);
    let names = groups.flat_map(|(number, group)| {
        let primary = format!("primary-{number}");
        let prefix = format!("{primary}-");
        of_group(primary, &prefix, group.batchers.len())
    });
    names.collect()
}
