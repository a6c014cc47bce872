//! The first worlds of every kind.

use tollgate_sim::{Kind, Plan, run, shrink};

/// Runs the worlds of `seeds`. Returns the violations of each that failed.
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
    let worlds = 6 * Kind::ALL.len() as u64;
    let failed = failures(0..worlds);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_seeds_draw_every_kind_of_world() {
    for (seed, kind) in Kind::ALL.into_iter().enumerate() {
        assert_eq!(Plan::of(seed as u64).kind, kind);
    }
}

#[test]
fn without_faults_the_store_decides_and_with_faults_nodes_do_too() {
    let alone = |seed| run(&Plan::of(seed), false).figures.by_nodes;
    assert_eq!(alone(0), 0, "healthy");
    assert_eq!(alone(1), 0, "distant");
    let faults: u64 = (0..4).map(|round| alone(round * 8 + 3) + alone(round * 8 + 4)).sum();
    assert!(faults > 100, "{faults} decisions by nodes alone in eight worlds with outages");
}

/// A judge that never finds anything is of no use: lost counters break the bound that expects none.
#[test]
fn a_loss_that_no_bound_allows_is_found_and_shrinks_to_its_cause() {
    let mut worlds = (0..40).map(|round| Plan { losses: 0, ..Plan::of(round * 8 + 6) });
    let failed = worlds.find(|plan| !run(plan, false).violations.is_empty());
    let plan = failed.expect("one of 40 worlds that lose counters breaks the bound");
    let smallest = shrink(&plan);
    assert!(!smallest.actions.is_empty() && smallest.actions.len() <= plan.actions.len());
    assert!(!run(&smallest, false).violations.is_empty());
}
