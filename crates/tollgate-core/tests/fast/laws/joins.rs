//! Joins of two states of one limit and subject.

use proptest::prelude::*;
use tollgate_core::algo::SlidingLog;
use tollgate_core::algo::sliding_log::{Entry, MAX_QUOTA, State};
use tollgate_core::decide::join;
use tollgate_core::{Algorithm, Cell, Limit, Millis, Reading, Timestamp, assess};

use crate::laws::world::{START, World, acts, any_algorithm, config};

proptest! {
    #![proptest_config(config(1_500))]

    /// If one state is a later state of the other, the join equals the later state, in either
    /// order.
    #[test]
    fn what_one_counted_and_the_other_did_too_counts_once(
        algorithm in any_algorithm(), before in acts(), after in takes(),
    ) {
        let mut world = World::new(algorithm);
        before.iter().for_each(|act| { world.act(act); });
        let earlier = world.cell.clone();
        after.iter().for_each(|cost| { world.take(*cost); });
        let (limit, now) = (world.limit.clone(), world.now);
        for (one, other) in [(&earlier, &world.cell), (&world.cell, &earlier)] {
            let joined = joined(one, other, &limit, now);
            prop_assert_eq!(reading_at(&joined, &limit, now), reading_at(&world.cell, &limit, now));
            let again = self::joined(&joined, other, &limit, now);
            prop_assert_eq!(reading_at(&again, &limit, now), reading_at(&joined, &limit, now));
        }
    }

    /// If two states have diverged, their join uses at least as many units as each of them, in
    /// either order.
    #[test]
    fn accounts_that_part_are_no_less_than_either(
        algorithm in any_algorithm(), before in acts(), one in acts(), other in acts(),
    ) {
        let mut common = World::new(algorithm);
        before.iter().for_each(|act| { common.act(act); });
        let (mut left, mut right) = (common.clone(), common);
        one.iter().for_each(|act| { left.act(act); });
        other.iter().for_each(|act| { right.act(act); });
        let (limit, now) = (&left.limit, left.now.max(right.now));
        let joined = joined(&left.cell, &right.cell, limit, now);
        let reading = reading_at(&joined, limit, now);
        let back = self::joined(&right.cell, &left.cell, limit, now);
        prop_assert_eq!(reading_at(&back, limit, now), reading);
        let most = reading_at(&left.cell, limit, now).used.max(reading_at(&right.cell, limit, now).used);
        prop_assert!(reading.used >= most, "{reading:?} of {left:?} and {right:?}");
    }
}

/// A log has at most as many entries as the largest quota. The newest entries are kept.
#[test]
fn joined_logs_have_no_more_entries_than_fill_every_quota() {
    let at = |index| Timestamp::from_millis(START + index);
    let log = |first: u64| {
        let entry = |index: u64| Entry { at: at(first + 2 * index), used: 1 };
        Cell::SlidingLog(State { entries: (0..6_000).map(entry).collect() })
    };
    let algorithm = SlidingLog::new(MAX_QUOTA, Millis::from_secs(3_600)).unwrap();
    let limit = Limit::new("law", Algorithm::SlidingLog(algorithm)).unwrap();
    let joined = join(Some(log(0)), log(1), &limit, at(12_000));
    let Some(Cell::SlidingLog(joined)) = joined else { panic!("{joined:?}") };
    let times = joined.entries.iter().map(|entry| entry.at);
    assert!(times.eq((12_000 - MAX_QUOTA..12_000).map(at)));
}

/// Generates the costs of several charges that are made at one time.
fn takes() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1..4_u64, 0..6)
}

fn joined(one: &Option<Cell>, other: &Option<Cell>, limit: &Limit, now: u64) -> Option<Cell> {
    match other {
        Some(other) => join(one.clone(), other.clone(), limit, Timestamp::from_millis(now)),
        None => one.clone(),
    }
}

fn reading_at(cell: &Option<Cell>, limit: &Limit, now: u64) -> Reading {
    let cost = tollgate_core::Cost::ONE;
    assess(cell.as_ref(), limit, cost, Timestamp::from_millis(now))
}
