//! Seeds of worlds that fail without the fix of a defect. `docs/simulation.md` describes the
//! defects.

use tollgate_sim::{Kind, Plan, run};

/// Runs the worlds of `seeds`, and checks that they are of the given kind and do not fail.
fn assert_sound(kind: Kind, seeds: &[u64]) {
    for seed in seeds {
        let plan = Plan::of(*seed);
        assert_eq!(plan.kind, kind, "seed {seed} is another world now: choose one of this kind");
        let outcome = run(&plan, false);
        assert!(outcome.violations.is_empty(), "seed {seed}: {:#?}", outcome.violations);
    }
}

/// The defect: a node with a clock that was wrong by more than a window treated every window of the
/// other nodes as over.
#[test]
fn a_node_with_a_wrong_clock_admits_nothing_beyond_a_limit() {
    assert_sound(Kind::WrongClocks, &CLOCKS);
}

/// The defect: if two servers of a shard reported themselves as primary, nodes chose different
/// ones.
#[test]
fn all_nodes_charge_the_same_one_of_two_primaries() {
    assert_sound(Kind::TwoPrimaries, &PRIMARIES);
}

/// The defect: a batcher with one call in flight left most decisions to the nodes if a round trip
/// took half of the deadline.
#[test]
fn a_distant_store_makes_every_decision() {
    assert_sound(Kind::Distant, &DISTANT);
}

/// The defect: units that nodes admitted without the store were never charged to the store.
#[test]
fn what_nodes_admitted_alone_is_charged_afterwards() {
    assert_sound(Kind::Outage, &LOCAL);
}

/// The defect: after a failover, the first call of a node was its heartbeat, with the time of the
/// machine's clock and not of the clock that decides. At that time, all recorded charges were too
/// old to be replayed.
#[test]
fn a_heartbeat_after_a_failover_replays_by_the_clock_that_decides() {
    // After a refusal, callers of this world pause no longer than after other answers.
    let plan = Plan { pause_after_refusal: 0, ..Plan::of(1_396) };
    assert_eq!(plan.kind, Kind::Failover);
    let outcome = run(&plan, false);
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
}

/// The defect: after an outage, the first decision on a subject waited until its node had charged
/// its own admissions to the store. These were four charges, and each took up to one deadline.
#[test]
fn the_first_decision_after_an_outage_takes_one_deadline() {
    assert_sound(Kind::Outage, &[435]);
}

/// The defect: if an outage lost the answer to a quota lease, the node did not report the units of
/// the lease as lost.
#[test]
fn a_lease_without_an_answer_is_reported_as_lost() {
    assert_sound(Kind::Leases, &[4_881, 4_905, 5_013]);
}

/// The defect: the bound on units that a rebalance counts twice did not include charges in flight
/// through the node that transfers the subject.
#[test]
fn a_charge_of_the_same_node_during_a_transfer_is_within_the_bound() {
    assert_sound(Kind::Rebalance, &[1_048_580]);
}

/// The defect: a node connected for a moment to an old primary that had returned, and then measured
/// the outage from this moment on. It did not replay the charges from before the failover.
#[test]
fn a_moment_with_the_old_primary_does_not_end_an_outage() {
    assert_sound(Kind::Failover, &[203_604]);
}

/// The defect: the store refused units that a node had admitted alone, and did not answer the charge
/// for the part that fits. The node gave up the other units although the store had not counted this
/// part.
#[test]
fn units_that_do_not_fit_are_given_up_after_the_rest_was_charged() {
    assert_sound(Kind::Outage, &[203_411]);
}

/// The defect: after a server was out of memory, a node created no keys with its next 64 commands to
/// this server. If the server had few subjects, these commands took more than 10 s.
#[test]
fn a_server_with_few_commands_receives_new_keys_soon_after_it_was_out_of_memory() {
    assert_sound(Kind::Overrides, &[1_132_199, 1_139_723]);
    assert_sound(Kind::Cluster, &[1_142_062]);
}

/// The defect: a primary refused calls with `CLUSTERDOWN` before its replica was promoted, and the
/// node measured the outage from the promotion on. It did not replay the charges from before the
/// refusals.
#[test]
fn an_outage_begins_with_the_first_call_that_the_primary_refuses() {
    assert_sound(Kind::Cluster, &[1_256_038, 1_275_712]);
}

/// The defect: a late reply of a replaced server counted as a change of the clock of its successor,
/// and replaced the estimate of this clock.
#[test]
fn a_late_reply_of_a_replaced_server_does_not_change_the_clock() {
    assert_sound(Kind::Sentinels, &[16_828, 4_200_663]);
}

/// The defect: while a slot moved, a server lost the content and not the version of the overrides.
/// After that, no override could be changed.
#[test]
fn a_document_that_is_lost_without_its_version_is_written_again() {
    assert_sound(Kind::Overrides, &[1_269_017]);
}

/// The defect: the bound on units that a rollout admits did not include charges of the only node in
/// flight while the percentage changed. Such a charge reached the old store after the subject's
/// usage had been read there.
#[test]
fn a_charge_in_flight_while_the_percentage_changes_is_within_the_bound() {
    assert_sound(Kind::Rollout, &[1_129_727]);
}

const CLOCKS: [u64; 2] = [2, 10];
const PRIMARIES: [u64; 3] = [13, 21, 45];
const DISTANT: [u64; 2] = [1, 9];
const LOCAL: [u64; 3] = [11, 27, 59];
