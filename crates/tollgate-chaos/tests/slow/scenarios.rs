//! Tests of each scenario alone: its fault has an effect, and the stated bounds hold.

use crate::{chaos, module, printed};

macro_rules! scenarios_hold {
    ($($test:ident $name:literal)*) => { $(
        #[test]
        fn $test() {
            holds(&[$name]);
        }
    )* };
}

/// Defines a test of each scenario with the server module, and with nodes that store states in the
/// tables of the module.
macro_rules! scenarios_hold_with_tables {
    ($($test:ident $name:literal)*) => { mod with_tables { $(
        #[test]
        fn $test() {
            super::holds(&["--module", &super::module(), "--tables", $name]);
        }
    )* } };
}

/// Defines a test of each scenario with the server module, and with nodes that store states in
/// Redis keys, as functions do.
macro_rules! scenarios_hold_in_the_module {
    ($($test:ident $name:literal)*) => { mod in_the_module { $(
        #[test]
        fn $test() {
            super::holds(&["--module", &super::module(), $name]);
        }
    )* } };
}

fn holds(arguments: &[&str]) {
    let output = chaos(&[&["--quick"], arguments].concat()).output().unwrap();
    let printed = printed(&output);
    println!("{printed}");
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("1 of 1 scenarios held"), "{printed}");
}

scenarios_hold! {
    primary_killed "primary-killed"
    host_dies "host-dies"
    primary_frozen "primary-frozen"
    frozen_returns "frozen-returns"
    primary_returns_empty "primary-returns-empty"
    replication_missing "replication-missing"
    slow_replies "slow-replies"
    clients_paused "clients-paused"
    network_silent "network-silent"
    replies_cut "replies-cut"
    step_forgotten "step-forgotten"
    primary_demoted "primary-demoted"
    out_of_memory "out-of-memory"
    evicted "evicted"
    no_replicas "no-replicas"
    server_busy "server-busy"
    flushed "flushed"
    restarted "restarted"
    memcached_restarted "memcached-restarted"
    clocks_disagree "clocks-disagree"
}

scenarios_hold_with_tables! {
    primary_killed "primary-killed"
    host_dies "host-dies"
    primary_frozen "primary-frozen"
    frozen_returns "frozen-returns"
    primary_returns_empty "primary-returns-empty"
    replication_missing "replication-missing"
    slow_replies "slow-replies"
    clients_paused "clients-paused"
    network_silent "network-silent"
    replies_cut "replies-cut"
    primary_demoted "primary-demoted"
    out_of_memory "out-of-memory"
    no_replicas "no-replicas"
    server_busy "server-busy"
    flushed "flushed"
    restarted "restarted"
    clocks_disagree "clocks-disagree"
    changing_world "changing-world"
}

scenarios_hold_in_the_module! {
    primary_killed "primary-killed"
    host_dies "host-dies"
    out_of_memory "out-of-memory"
    evicted "evicted"
    restarted "restarted"
    changing_world "changing-world"
}

#[test]
fn no_scenario_is_left_out() {
    let output = chaos(&["--help"]).output().unwrap();
    let help = printed(&output);
    let listed = help.lines().filter(|line| line.trim_start().starts_with("- "));
    let names: Vec<_> = listed.filter_map(|line| line.trim().split([' ', ':']).nth(1)).collect();
    let source = include_str!("scenarios.rs");
    // The example runs the last one.
    let is_run =
        |name: &&&str| source.contains(&format!("\"{name}\"")) || **name == "changing-world";
    let left_out: Vec<_> = names.iter().filter(|name| !is_run(name)).collect();
    assert!(names.len() > 10 && left_out.is_empty(), "{left_out:?} of {names:?}");
}
