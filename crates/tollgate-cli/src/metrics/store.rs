//! Metrics of the store: memory, shards, servers, or two stores at once.

use std::time::Duration;

use tollgate::model::Policy;
use tollgate::observe::MAX_COUNTED_LIMITS;
use tollgate::store::Memory;
use tollgate::store::memory::Stats;
use tollgate_backend::{Backend, Counts, MapStatus, ShardStatus, phase_word};
use tollgate_server::metrics::{Exposition, Family};
use tollgate_stores::rebalance::Phase;

use super::families::{
    CLOCK_OFFSET, CLOCK_OVERRIDDEN, CLOCK_READY, CLOCK_SKEW, DEADLINE_MISSES, DENY_CACHE_HITS,
    DISCARDED, FALLBACK_DECISIONS, LEASED, LEASED_UNITS, LEASES, LOCAL_UNITS, MAP, MAP_NODES,
    MAP_UNANSWERED, MEMORY_BYTES, MEMORY_COUNTERS, MEMORY_DISCARDED, MEMORY_ENTRIES,
    MEMORY_EVICTED, MEMORY_EXPIRED, MEMORY_FULL, MEMORY_LIMIT_ENTRIES, MEMORY_OVERFLOW,
    MEMORY_REFUNDS, REBALANCE_MISSED_WRITES, REBALANCE_PHASE, REBALANCE_TRANSFER_FAILURES,
    REBALANCE_TRANSFERRED, REFUND_FAILURES, REPLAY_ABANDONED, REPLAYED_LIMITS, REPLAYED_UNITS,
    SHARD_DURATION, SHARD_PRIMARIES, SHARD_UP, UNANSWERED, WINDOWS_LOST,
};
use super::per_store::{PerStore, of_each};
use super::{batchers, memcached, migration};

const PHASES: [Phase; 3] = [Phase::DualWrite, Phase::Cutover, Phase::Done];

pub(super) fn write(page: &mut Exposition, store: &Backend, policy: &Policy) {
    let leaves = store.base_stores();
    memory(page, &leaves);
    memory_of_limits(page, &leaves, policy);
    counts(page, &leaves);
    clocks(page, &leaves);
    let all = of_each(&leaves, Backend::status);
    shards(page, &all);
    batchers::write(page, &all);
    maps(page, &leaves);
    memcached::write(page, &leaves);
    migration::write(page, store);
}

fn memory(page: &mut Exposition, leaves: &[PerStore<&Backend>]) {
    let stats = of_each(leaves, |leaf| leaf.memory().map(Memory::stats));
    let mut family = |family: &Family, value: fn(&Stats) -> u64| {
        page.family(family, stats.iter().map(|(side, stats)| ([*side], value(stats))));
    };
    family(&MEMORY_ENTRIES, |stats| stats.entries as u64);
    family(&MEMORY_REFUNDS, |stats| stats.refunds as u64);
    family(&MEMORY_BYTES, |stats| stats.bytes as u64);
    family(&MEMORY_EVICTED, |stats| stats.evicted);
    family(&MEMORY_EXPIRED, |stats| stats.swept);
    family(&MEMORY_DISCARDED, |stats| stats.discarded);
    family(&MEMORY_OVERFLOW, |stats| stats.overflow);
    family(&MEMORY_COUNTERS, |stats| stats.overflow_counters as u64);
    family(&MEMORY_FULL, |stats| stats.full);
}

fn memory_of_limits(page: &mut Exposition, leaves: &[PerStore<&Backend>], policy: &Policy) {
    let limits = policy.limits().iter().take(MAX_COUNTED_LIMITS).map(|counted| &*counted.limit);
    let limits: Vec<_> = limits.collect();
    let stats = of_each(leaves, |leaf| {
        leaf.memory().map(|memory| memory.limit_stats(limits.iter().copied()))
    });
    let entries = stats.iter().flat_map(|(side, stats)| {
        let names = limits.iter().map(move |limit| [*side, limit.name()]);
        names.zip(stats.iter().map(|stats| stats.entries as u64))
    });
    page.family(&MEMORY_LIMIT_ENTRIES, entries);
}

fn counts(page: &mut Exposition, leaves: &[PerStore<&Backend>]) {
    let counts = of_each(leaves, Backend::counts);
    let mut family = |family: &Family, value: fn(&Counts) -> u64| {
        page.family(family, counts.iter().map(|(side, counts)| ([*side], value(counts))));
    };
    family(&DENY_CACHE_HITS, |counts| counts.deny_cache_hits);
    family(&FALLBACK_DECISIONS, |counts| counts.fallback_decisions);
    family(&UNANSWERED, |counts| counts.unanswered);
    family(&DEADLINE_MISSES, |counts| counts.deadline_misses);
    family(&REFUND_FAILURES, |counts| counts.unrefunded);
    family(&DISCARDED, |counts| counts.discarded);
    family(&LEASED, |counts| counts.leases.decided);
    family(&LEASES, |counts| counts.leases.taken);
    let units = counts.iter().flat_map(|(side, Counts { leases, .. })| {
        [
            ([*side, "taken"], leases.units_taken),
            ([*side, "returned"], leases.units_returned),
            ([*side, "lost"], leases.units_lost),
        ]
    });
    page.family(&LEASED_UNITS, units);
    let units = counts.iter().flat_map(|(side, Counts { local_charges, .. })| {
        [
            ([*side, "charged"], local_charges.charged),
            ([*side, "exceeded"], local_charges.exceeded),
            ([*side, "unknown"], local_charges.unknown),
            ([*side, "dropped"], local_charges.dropped),
        ]
    });
    page.family(&LOCAL_UNITS, units);
}

/// Writes whether the clocks of the stores' servers permit this node to be ready.
fn clocks(page: &mut Exposition, leaves: &[PerStore<&Backend>]) {
    let ready = of_each(leaves, |leaf| leaf.counts().map(|_| leaf.check_clock().is_ok()));
    page.family(&CLOCK_READY, ready.iter().map(|(side, ready)| ([*side], u8::from(*ready))));
}

pub(super) fn shards(page: &mut Exposition, shards: &[PerStore<ShardStatus>]) {
    let labels =
        |(side, shard): &'_ PerStore<ShardStatus>| [(*side).to_owned(), shard.name.to_string()];
    let up = |shard: &ShardStatus| u8::from(shard.is_served());
    page.family(&SHARD_UP, shards.iter().map(|it| (labels(it), up(&it.1))));
    let claimed = |it: &&PerStore<ShardStatus>| !it.1.claimed_by.is_empty();
    let primaries = shards.iter().filter(claimed);
    page.family(&SHARD_PRIMARIES, primaries.map(|it| (labels(it), it.1.claimed_by.len())));
    let offsets = shards.iter().filter_map(|it| {
        let offset = it.1.clock_offset?.millis;
        let sign = if offset < 0 { "-" } else { "" };
        let seconds = Duration::from_millis(offset.unsigned_abs()).as_secs_f64();
        Some((labels(it), format!("{sign}{seconds}")))
    });
    page.family(&CLOCK_OFFSET, offsets);
    page.family(&CLOCK_SKEW, shards.iter().map(|it| (labels(it), it.1.skew().as_secs_f64())));
    let overridden = |it: &ShardStatus| u8::from(it.clock_overridden);
    page.family(&CLOCK_OVERRIDDEN, shards.iter().map(|it| (labels(it), overridden(&it.1))));
    let mut counter = |family: &Family, value: fn(&ShardStatus) -> u64| {
        page.family(family, shards.iter().map(|it| (labels(it), value(&it.1))));
    };
    counter(&WINDOWS_LOST, |shard| shard.windows_lost);
    counter(&REPLAYED_UNITS, |shard| shard.replayed.units);
    counter(&REPLAYED_LIMITS, |shard| shard.replayed.limits);
    counter(&REPLAY_ABANDONED, |shard| shard.replayed.abandoned);
    page.histogram(&SHARD_DURATION, shards.iter().map(|it| (labels(it), it.1.took)));
}

fn maps(page: &mut Exposition, leaves: &[PerStore<&Backend>]) {
    let maps = of_each(leaves, Backend::map_status);
    let version =
        |(side, map): &PerStore<MapStatus>| ([(*side).to_owned(), map.version.to_string()], 1);
    page.family(&MAP, maps.iter().map(version));
    let answered = || maps.iter().filter_map(|(side, map)| Some((*side, map.nodes?)));
    let nodes = answered().flat_map(|(side, nodes)| {
        let by_map =
            [("current", nodes.current), ("previous", nodes.before), ("other", nodes.others)];
        by_map.map(|(map, count)| ([side, map], count))
    });
    page.family(&MAP_NODES, nodes);
    page.family(&MAP_UNANSWERED, answered().map(|(side, nodes)| ([side], nodes.unanswered)));
    let moves = || maps.iter().filter_map(|(side, map)| Some((*side, map.moving?)));
    let phases = moves().flat_map(|(side, it)| {
        PHASES.map(|phase| ([side, phase_word(phase)], u8::from(phase == it.phase)))
    });
    page.family(&REBALANCE_PHASE, phases);
    page.family(&REBALANCE_TRANSFERRED, moves().map(|(side, it)| ([side], it.transferred)));
    page.family(&REBALANCE_MISSED_WRITES, moves().map(|(side, it)| ([side], it.diverged)));
    page.family(
        &REBALANCE_TRANSFER_FAILURES,
        moves().map(|(side, it)| ([side], it.failed_transfers)),
    );
}
