//! Runs ten thousand worlds, or as many as two threads can run in two minutes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tollgate_sim::plan::{FIRST_OF_ALL, FIRST_OF_SECOND};
use tollgate_sim::{Plan, run};

/// The allocator of the test. It is fast for the many small allocations of a run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TIME: Duration = Duration::from_secs(120);
const THREADS: usize = 2;

/// The number of worlds that are run even if the machine is slow.
const LEAST: u64 = 400;

/// The number of worlds after which the test ends on a fast machine.
const MOST: u64 = 10_000;

/// Returns the seed of the world with the number `number`. A third of the worlds have seeds from 0
/// on, a third from [`FIRST_OF_SECOND`] on, and a third from [`FIRST_OF_ALL`] on.
const fn seed_of(number: u64) -> u64 {
    let from = [0, FIRST_OF_SECOND, FIRST_OF_ALL];
    from[(number % 3) as usize] + number / 3
}

/// For each kind of world, the closest approach to the bounds, in percent of the bound: first of
/// the units that the store admits, then of the units that nodes admit without the store.
type Approached = BTreeMap<String, (u64, u64)>;

#[test]
fn worlds_satisfy_everything_for_two_minutes() {
    let (next, began) = (AtomicU64::new(0), Instant::now());
    let work = || {
        let (mut approached, mut failed) = (Approached::new(), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= MOST || (number >= LEAST && began.elapsed() > TIME) {
                return (approached, failed);
            }
            let seed = seed_of(number);
            let plan = Plan::of(seed);
            let outcome = run(&plan, false);
            let (store, local) = approached.entry(plan.kind.to_string()).or_default();
            *store = (*store).max(outcome.figures.store_bound);
            *local = (*local).max(outcome.figures.local_bound);
            if let Some(first) = outcome.violations.first() {
                let replay = format!("cargo run -p tollgate-sim -- --seed {seed} --trace");
                failed.push(format!("seed {seed}: {plan}\n  {first}\n  replay: {replay}"));
            }
        }
    };
    let results: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("the worlds end")).collect()
    });
    let worlds = next.into_inner() - THREADS as u64;
    println!("{worlds} worlds in {} s", began.elapsed().as_secs());
    let failed: Vec<_> = results.iter().flat_map(|(_, failed)| failed.clone()).collect();
    assert!(failed.is_empty(), "{} worlds failed:\n{}", failed.len(), failed.join("\n"));
    let most = |kind: &str| {
        let of_kind = results.iter().filter_map(|(approached, _)| approached.get(kind));
        of_kind.fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)))
    };
    // If no world reaches a quarter of a bound, the bound is too weak, or the faults in the worlds
    // are.
    for kind in ["failover", "data loss", "outage", "nodes restart"] {
        let (store, local) = most(kind);
        assert!(store >= 25 && local >= 25, "{kind}: {store} % and {local} % of the bounds");
    }
}
