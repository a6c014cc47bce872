//! Runs the first worlds of every kind.

use tollgate_sim::plan::{Action, FIRST_OF_ALL, FIRST_OF_THIRD};
use tollgate_sim::{Kind, Plan, run, shrink};

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
    let worlds = 8 * Kind::ALL.len() as u64;
    let is_new = |seed: &u64| !Kind::THIRD.contains(&Plan::of(*seed).kind);
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

/// Worlds with lost counters fail if their plan states that no counters are lost. Such a world
/// shrinks to a smaller one that still fails.
#[test]
fn a_loss_that_no_bound_allows_is_found_and_shrinks_to_its_cause() {
    let mut worlds = (0..40).map(|round| Plan { losses: 0, ..Plan::of(round * 8 + 6) });
    let failed = worlds.find(|plan| !run(plan, false).violations.is_empty());
    let plan = failed.expect("one of 40 worlds that lose counters breaks the bound");
    let smallest = shrink(&plan);
    assert!(!smallest.actions.is_empty() && smallest.actions.len() <= plan.actions.len());
    assert!(!run(&smallest, false).violations.is_empty());
}

/// Returns the first worlds of a kind.
fn worlds_of(kind: Kind, count: usize) -> impl Iterator<Item = Plan> {
    let from = if Kind::THIRD.contains(&kind) { FIRST_OF_THIRD } else { FIRST_OF_ALL };
    (from..).map(Plan::of).filter(move |plan| plan.kind == kind).take(count)
}

/// Without the previous shard map, subjects that move start with new windows. The judge must detect
/// this.
#[test]
fn a_new_shard_map_without_the_previous_one_is_found() {
    let mut worlds = worlds_of(Kind::Rebalance, 10).map(|mut plan| {
        plan.losses = 0;
        plan.versions[1].previous = None;
        plan
    });
    assert!(worlds.any(|plan| !run(&plan, false).violations.is_empty()));
}

/// If one node keeps its percentage, the nodes charge different stores. The judge must detect this.
#[test]
fn nodes_with_different_percentages_are_found() {
    let mut worlds = worlds_of(Kind::Rollout, 20).filter(|plan| plan.nodes > 1).map(|mut plan| {
        plan.losses = 0;
        plan.actions.retain(|(_, action)| !matches!(action, Action::Reload { node: 0, .. }));
        plan
    });
    assert!(worlds.any(|plan| !run(&plan, false).violations.is_empty()));
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

/// If an override has a larger quota than every version of the plan, the store admits too many
/// units. The judge must detect this.
#[test]
fn an_override_beyond_the_quotas_of_the_plan_is_found() {
    let mut worlds = worlds_of(Kind::Overrides, 20).map(|mut plan| {
        for (_, action) in &mut plan.actions {
            if let Action::Override { quota: Some(quota), .. } = action {
                *quota *= 4;
            }
        }
        plan
    });
    assert!(worlds.any(|plan| !run(&plan, false).violations.is_empty()));
}

/// A node that keeps its old policy admits another quota. The judge must detect this.
#[test]
fn a_node_that_misses_a_reload_is_found() {
    let mut worlds = worlds_of(Kind::Reloads, 20).map(|mut plan| {
        let last = plan.last_version;
        let is_last = |action: &Action| {
            matches!(action, Action::Reload { node: 0, version } if *version == last)
        };
        plan.actions.retain(|(_, action)| !is_last(action));
        plan
    });
    assert!(worlds.any(|plan| !run(&plan, false).violations.is_empty()));
}
