//! Seeds that fail when the fix of a mistake is taken out: see docs/simulation.md.

use tollgate_sim::{Kind, Plan, run};

/// Runs the worlds of `seeds`, which are of the kind that shows the mistake.
fn assert_sound(kind: Kind, seeds: &[u64]) {
    for seed in seeds {
        let plan = Plan::of(*seed);
        assert_eq!(plan.kind, kind, "seed {seed} is another world now: choose one of this kind");
        let outcome = run(&plan, false);
        assert!(outcome.violations.is_empty(), "seed {seed}: {:#?}", outcome.violations);
    }
}

/// A node whose clock was wrong by more than a window treated every window of the others as over.
#[test]
fn a_node_with_a_wrong_clock_admits_nothing_beyond_a_limit() {
    assert_sound(Kind::WrongClocks, &CLOCKS);
}

/// Nodes chose different servers when two of a shard called themselves primary.
#[test]
fn all_nodes_charge_the_same_one_of_two_primaries() {
    assert_sound(Kind::TwoPrimaries, &PRIMARIES);
}

/// With a round trip of half the deadline, a batcher with one call in flight left most decisions to
/// the nodes.
#[test]
fn a_distant_store_makes_every_decision() {
    assert_sound(Kind::Distant, &DISTANT);
}

/// Units that nodes admitted alone were never charged to the store.
#[test]
fn what_nodes_admitted_alone_is_charged_afterwards() {
    assert_sound(Kind::Outage, &LOCAL);
}

/// The heartbeat of a node was the first call after a failover, at the time of the machine's clock,
/// which was not the clock that decides. All recorded charges were too old to be replayed then.
#[test]
fn a_heartbeat_after_a_failover_replays_by_the_clock_that_decides() {
    // With callers that pause no longer after a refusal.
    let plan = Plan { pause_after_refusal: 0, ..Plan::of(1_396) };
    assert_eq!(plan.kind, Kind::Failover);
    let outcome = run(&plan, false);
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
}

/// The first decision on a subject after an outage waited for four charges of its node's own
/// admissions, each for up to a deadline.
#[test]
fn the_first_decision_after_an_outage_takes_one_deadline() {
    assert_sound(Kind::Outage, &[435]);
}

/// After an outage lost the answer to a lease, the lease was not among the units reported as lost.
#[test]
fn a_lease_without_an_answer_is_reported_as_lost() {
    assert_sound(Kind::Leases, &[4_881, 4_905, 5_013]);
}

const CLOCKS: [u64; 2] = [2, 10];
const PRIMARIES: [u64; 3] = [13, 21, 45];
const DISTANT: [u64; 2] = [1, 9];
const LOCAL: [u64; 3] = [11, 27, 59];
