//! Runs ten thousand worlds on two threads, in two minutes at most.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tollgate_sim::plan::{FIRST_OF_ALL, FIRST_OF_FOURTH, FIRST_OF_SECOND, FIRST_OF_THIRD};
use tollgate_sim::{Plan, replay_command, run};

/// The allocator of the test. It is fast for the many small allocations of a run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The time after which no further world starts, so a slow machine runs fewer worlds.
const TIME: Duration = Duration::from_secs(120);
const THREADS: usize = 2;

/// The number of worlds to run.
const WORLDS: u64 = 10_000;

/// The fewest worlds from which the test draws a conclusion. With fewer worlds, the test fails.
const LEAST: usize = 400;

/// The kinds in which the store admits at least a quarter of the units that its bound permits beyond
/// a quota.
const REACH_STORE_BOUND: [&str; 7] =
    ["failover", "data loss", "evictions", "memcached", "overrides", "rollout", "server clocks"];

/// The kinds in which nodes admit at least a quarter of the units that they may admit without the
/// store.
const REACH_LOCAL_BOUND: [&str; 15] = [
    "busy servers",
    "cluster",
    "data loss",
    "evictions",
    "failover",
    "leases",
    "memcached",
    "nodes restart",
    "membership",
    "outage",
    "overload",
    "overrides",
    "reloads",
    "sentinels",
    "server clocks",
];

/// The fewest worlds from which the approach to the bounds is checked. With fewer worlds, some kinds
/// have too few worlds to come near their bounds.
const CONCLUSIVE: usize = 3_000;

/// Returns the seed of the world with the number `number`. Half of the worlds have seeds from 0 on,
/// and an eighth each from [`FIRST_OF_SECOND`], [`FIRST_OF_THIRD`], [`FIRST_OF_FOURTH`] and
/// [`FIRST_OF_ALL`] on. On average, the worlds from seed 0 on need the least processor time.
const fn seed_of(number: u64) -> u64 {
    let round = number / 8;
    match number % 8 {
        part @ ..4 => 4 * round + part,
        4 => FIRST_OF_SECOND + round,
        5 => FIRST_OF_THIRD + round,
        6 => FIRST_OF_FOURTH + round,
        _ => FIRST_OF_ALL + round,
    }
}

/// For each kind of world, the closest approach to the bounds, in percent of the bound: first of
/// the units that the store admits beyond a quota, or `None` if it may admit none, then of the units
/// that nodes admit without the store.
type Approached = BTreeMap<String, (Option<u64>, u64)>;

#[test]
fn ten_thousand_worlds_satisfy_everything() {
    let (next, began) = (AtomicU64::new(0), Instant::now());
    let work = || {
        let (mut approached, mut failed, mut worlds) = (Approached::new(), Vec::new(), 0);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= WORLDS || began.elapsed() > TIME {
                return (approached, failed, worlds);
            }
            let seed = seed_of(number);
            let plan = Plan::of(seed);
            let outcome = run(&plan, false);
            worlds += 1;
            let (store, local) = approached.entry(plan.kind.to_string()).or_default();
            *store = (*store).max(outcome.figures.store_excess);
            *local = (*local).max(outcome.figures.local_bound);
            if let Some(first) = outcome.violations.first() {
                let replay = replay_command(seed);
                failed.push(format!("seed {seed}: {plan}\n  {first}\n  replay: {replay}"));
            }
        }
    };
    let results: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("the worlds end")).collect()
    });
    let worlds = results.iter().map(|(.., worlds)| worlds).sum::<usize>();
    println!("{worlds} of {WORLDS} worlds ran in {} s", began.elapsed().as_secs());
    assert!(worlds >= LEAST, "only {worlds} worlds ran in {TIME:?}");
    let failed: Vec<_> = results.iter().flat_map(|(_, failed, _)| failed.clone()).collect();
    assert!(failed.is_empty(), "{} worlds failed:\n{}", failed.len(), failed.join("\n"));
    let most = |kind: &str| {
        let of_kind = results.iter().filter_map(|(approached, ..)| approached.get(kind));
        of_kind.fold((None, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)))
    };
    if worlds < CONCLUSIVE {
        return;
    }
    // If no world reaches a quarter of a bound, the bound is too weak, or the faults in the worlds
    // are.
    for kind in REACH_STORE_BOUND {
        let store = most(kind).0;
        assert!(store >= Some(25), "{kind}: the store reached {store:?} % of what it may exceed");
    }
    for kind in REACH_LOCAL_BOUND {
        let local = most(kind).1;
        assert!(local >= 25, "{kind}: nodes reached {local} % of their bound");
    }
}
