//! Runs the first worlds of every kind.

use tollgate_sim::plan::{Action, FIRST_OF_ALL, FIRST_OF_FOURTH, FIRST_OF_THIRD, StoreKind};
use tollgate_sim::{Kind, Plan, run};

use crate::worlds_of;

/// Runs the worlds of `seeds`. Returns the violations of each world that failed.
fn failures(seeds: impl Iterator<Item = u64>) -> Vec<String> {
    let failed = seeds.filter_map(|seed| {
        let (plan, outcome) = (Plan::of(seed), run(&Plan::of(seed), false));
        let first = outcome.violations.first()?;
        let replay = format!("cargo run -p tollgate-sim -- --seed {seed} --trace");
        Some(format!("seed {seed}: {plan}\n  {first}\n  replay: {replay}"))
    });
    failed.collect()
}

#[test]
fn the_first_worlds_satisfy_everything() {
    let worlds = 6 * Kind::FIRST.len() as u64;
    let failed = failures(0..worlds);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_first_worlds_with_changes_satisfy_everything() {
    let worlds = 4 * Kind::THIRD.len() as u64;
    let is_new = |seed: &u64| !Kind::FIRST.contains(&Plan::of(*seed).kind);
    let failed = failures((FIRST_OF_THIRD..FIRST_OF_THIRD + worlds).filter(is_new));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_first_worlds_with_clusters_and_overrides_satisfy_everything() {
    let worlds = 8 * Kind::FOURTH.len() as u64;
    let is_new = |seed: &u64| !Kind::THIRD.contains(&Plan::of(*seed).kind);
    let failed = failures((FIRST_OF_FOURTH..FIRST_OF_FOURTH + worlds).filter(is_new));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_first_worlds_with_wrong_servers_overloads_and_other_nodes_satisfy_everything() {
    let worlds = 8 * Kind::ALL.len() as u64;
    let is_new = |seed: &u64| !Kind::FOURTH.contains(&Plan::of(*seed).kind);
    let failed = failures((FIRST_OF_ALL..FIRST_OF_ALL + worlds).filter(is_new));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_seeds_draw_every_kind_of_world() {
    for (seed, kind) in Kind::FIRST.iter().enumerate() {
        assert_eq!(Plan::of(seed as u64).kind, *kind);
    }
    let seeds = FIRST_OF_ALL..FIRST_OF_ALL + Kind::ALL.len() as u64;
    let drawn: Vec<_> = seeds.map(|seed| Plan::of(seed).kind).collect();
    assert!(Kind::ALL.iter().all(|kind| drawn.contains(kind)), "{drawn:?}");
}

#[test]
fn without_faults_the_store_decides_and_with_faults_nodes_do_too() {
    let alone = |seed| run(&Plan::of(seed), false).figures.by_nodes;
    assert_eq!(alone(0), 0, "healthy");
    assert_eq!(alone(1), 0, "distant");
    let faults: u64 = (0..4).map(|round| alone(round * 8 + 3) + alone(round * 8 + 4)).sum();
    assert!(faults > 100, "{faults} decisions by nodes alone in eight worlds with outages");
}

/// In these worlds, a burst of requests fills the queue of a node to a server, and the node decides
/// the rest alone. The queue never holds more than its bound, and all limits are exact afterwards.
#[test]
fn bursts_fill_the_queue_of_a_node_and_no_more() {
    for seed in [4_194_454, 4_194_517] {
        let plan = Plan::of(seed);
        assert_eq!(plan.kind, Kind::Overload, "seed {seed} is another world now");
        let outcome = run(&plan, false);
        assert!(outcome.violations.is_empty(), "seed {seed}: {:#?}", outcome.violations);
        let figures = outcome.figures;
        assert_eq!(figures.longest_queue, 8_192, "seed {seed}");
        assert!(figures.overloaded > 1_000, "seed {seed}: {} rejected", figures.overloaded);
    }
}

/// The worlds with other nodes contain nodes that join, leave and pause, and restarts with another
/// number of nodes. The worlds with wrong clocks contain every store and promotions.
#[test]
fn nodes_and_clocks_change_in_every_way() {
    let has = |plan: &Plan, is_meant: fn(&Action) -> bool| {
        plan.actions.iter().any(|(_, action)| is_meant(action))
    };
    let plans: Vec<_> = worlds_of(Kind::Membership, 40).collect();
    let joins = |plan: &&Plan| !plan.absent_first.is_empty();
    let leaves = |plan: &&Plan| !plan.absent_last.is_empty();
    assert!(plans.iter().filter(joins).any(|plan| leaves(&plan)));
    assert!(plans.iter().any(|plan| has(plan, |it| matches!(it, Action::PauseNode { .. }))));
    assert!(plans.iter().any(|plan| has(plan, |it| matches!(it, Action::Reload { .. }))));
    assert!(plans.iter().any(|plan| plan.restarts > 2));
    let plans: Vec<_> = worlds_of(Kind::ServerClocks, 60).collect();
    for store in [StoreKind::Redis, StoreKind::Cluster, StoreKind::Memcached] {
        let of_store = plans.iter().filter(|plan| plan.store == store);
        let promotes = |plan: &Plan| has(plan, |it| matches!(it, Action::Promote(_)));
        let count = of_store.clone().filter(|plan| promotes(plan)).count();
        assert_eq!(count > 0, store != StoreKind::Memcached, "{store}: {count} promotions");
        assert!(of_store.clone().any(|plan| plan.losses > 0), "{store}");
    }
}

/// The worlds with overrides contain requests with every effect in every store.
#[test]
fn overrides_have_every_effect_in_every_store() {
    let stores = [StoreKind::Redis, StoreKind::Cluster, StoreKind::Memcached];
    let of_store = |store| ["(Unlimited)", "(Blocked)", "(Counted)"].map(|effect| (store, effect));
    let mut missing = stores.map(of_store).concat();
    for plan in worlds_of(Kind::Overrides, 60) {
        let events = run(&plan, true).events;
        missing.retain(|(store, effect)| {
            *store != plan.store || !events.iter().any(|event| event.what.contains(effect))
        });
        if missing.is_empty() {
            return;
        }
    }
    panic!("no request had {missing:?}");
}

/// The worlds with a cluster contain every reply by which a server refers a node to another server
/// or to a later time.
#[test]
fn servers_of_a_cluster_redirect_nodes_in_every_way() {
    let mut missing = vec!["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"];
    for plan in worlds_of(Kind::Cluster, 60) {
        let events = run(&plan, true).events;
        missing.retain(|reply| !events.iter().any(|event| event.what.contains(reply)));
        if missing.is_empty() {
            return;
        }
    }
    panic!("no server replied with {missing:?}");
}
