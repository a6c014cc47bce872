//! The same seed runs the same world again.

use tollgate_sim::{Plan, run, trace};

/// Without a seed for the order of tasks, Tokio wakes the tasks of one ms in a random order. In
/// some worlds, this order decides which of two calls uses an idle connection, so two runs differ.
#[cfg(not(tokio_unstable))]
#[test]
fn the_same_seed_mostly_runs_the_same_world() {
    let seeds = 0..12;
    let same = seeds.clone().filter(|seed| first_difference(*seed).is_none()).count();
    assert!(same * 2 > seeds.count(), "only {same} worlds were the same again");
}

#[cfg(tokio_unstable)]
#[test]
fn every_kind_of_world_runs_the_same_again() {
    use tollgate_sim::Kind;
    use tollgate_sim::plan::FIRST_OF_ALL;

    // The worlds of these seeds, with leases and with outages of several nodes, once depended on
    // the random order of a hash map.
    let known = [13, 5_133, 16_403];
    let seeds = FIRST_OF_ALL..FIRST_OF_ALL + 4 * Kind::ALL.len() as u64;
    let differences = known.into_iter().chain(seeds).filter_map(first_difference);
    let differences: Vec<_> = differences.collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Runs the world of `seed` twice. Returns a description of the first event that differs between
/// the runs.
fn first_difference(seed: u64) -> Option<String> {
    let plan = Plan::of(seed);
    let table = || trace::table(&run(&plan, true).events);
    let (one, other) = (table(), table());
    assert!(one.lines().count() > 100, "seed {seed}: only {} events", one.lines().count());
    if one == other {
        return None;
    }
    let mut lines = one.lines().zip(other.lines());
    let (one, other) = lines.find(|(one, other)| one != other).unwrap_or(("", "more events"));
    Some(format!("seed {seed}: {plan}\n  {one}\n  {other}"))
}

#[test]
fn a_trace_shows_faults_and_decisions_in_the_order_of_time() {
    let outcome = run(&Plan::of(3), true);
    assert!(outcome.events.is_sorted_by_key(|event| event.at));
    assert!(outcome.events.iter().any(|event| event.is_fault));
    let table = trace::table(&outcome.events);
    assert!(table.contains("admitted by Store"), "{}", table.len());
    let page = trace::page("seed 3", &outcome.events);
    assert!(page.contains("<th>node 0") && page.contains("class=fault"));
}
