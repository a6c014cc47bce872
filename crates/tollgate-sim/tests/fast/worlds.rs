//! The first worlds of every kind.

use tollgate_sim::{Kind, Plan, run};

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
