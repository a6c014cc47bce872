//! A seed is a world: it runs the same way again.

use tollgate_sim::{Plan, run, trace};

/// Tokio wakes the waiters of a watch channel in an order that only its unstable builds can seed. In
/// some worlds, this order decides which of two calls of the same ms uses an idle connection. All
/// others are the same in every event.
#[test]
fn the_same_seed_runs_the_same_world() {
    let seeds = 0..12;
    let is_same = |seed: &u64| {
        let events = || run(&Plan::of(*seed), true).events;
        let (one, other) = (events(), events());
        assert!(one.len() > 100, "seed {seed}: only {} events", one.len());
        one == other
    };
    let same = seeds.clone().filter(is_same).count();
    assert!(same * 2 > seeds.count(), "only {same} worlds were the same again");
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
