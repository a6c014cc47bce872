//! Many concurrent threads make calls over several shards. The answers are checked as one history.

use std::thread;

use tollgate::model::{Cost, Store, StoreError};
use tollgate::store::Memory;
use tollgate_conformance::history::{
    Allowance, LARGEST_COST, Recorded, Refunds, Report, Subjects, Workload,
};
use tollgate_stores::atomic::max_held_units;
use tollgate_stores::{Atomic, Sharded};

use crate::atomic::over;
use crate::faulty::{Faulty, Trouble};
use crate::setup::at_once;

const CALLERS: u64 = 8;
const SEEDS: u64 = 8;

/// Runs all callers and checks the history. Most calls span several shards. The only tolerance is
/// for the units that such calls hold until they are refunded.
fn judge<S: Store + 'static>(
    seed: u64,
    refunds: Refunds,
    store: Atomic<Sharded<S>>,
) -> (Report, u64) {
    let mut workload = Workload::new(seed, Workload::limits_of_each_kind(), refunds);
    workload.of_a_call = Subjects::Several;
    workload.subjects = 6;
    let store = Recorded::new(store);
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (workload, store) = (&workload, &store);
            scope.spawn(move || at_once(workload.call(store, caller)));
        }
    });
    let largest = Cost::new(LARGEST_COST).unwrap();
    let (held, unrefunded) = (max_held_units(CALLERS, largest), store.store().unrefunded());
    let allowance =
        Allowance { held, unrefunded: unrefunded * largest.get(), ..Allowance::default() };
    let report = store.history().check(allowance);
    println!("seed {seed}, {refunds:?}: {report}");
    report.assert_sound();
    assert!(report.admitted > 0, "{report}");
    (report, unrefunded)
}

#[test]
fn calls_over_three_shards_are_sound() {
    let mut refused = 0;
    for seed in 0..SEEDS {
        for refunds in [Refunds::Never, Refunds::Often] {
            let (report, unrefunded) =
                judge(seed, refunds, over([(); 3].map(|()| Memory::default())));
            assert_eq!((report.unknown, unrefunded), (0, 0));
            refused += report.refused;
        }
    }
    assert!(refused > 0, "no limit was ever reached");
}

#[test]
fn calls_over_shards_that_fail_now_and_then_are_sound() {
    // If units are often refunded, the order of the threads determines whether a limit is reached.
    let mut refused = 0;
    for seed in 0..SEEDS {
        for refunds in [Refunds::Never, Refunds::Often] {
            let shards = [Faulty::new(), Faulty::new()];
            let troubles =
                [Trouble::Lost(StoreError::Unavailable), Trouble::Unheard(StoreError::TimedOut)];
            for (shard, trouble) in shards.iter().zip(troubles) {
                let quiet = std::iter::repeat_n(Trouble::None, 10 + seed as usize);
                let round: Vec<_> = quiet.chain([trouble]).collect();
                shard.next(round.iter().cloned().cycle().take(5_000));
            }
            let (report, _) = judge(seed, refunds, over(shards));
            assert!(report.unknown > 0, "{report}");
            refused += report.refused;
        }
    }
    assert!(refused > 0, "no limit was ever reached");
}
