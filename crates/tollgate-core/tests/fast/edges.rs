//! Decisions on states that random operations seldom reach: at the end of time, in the next window,
//! and with nothing left to refund.

use std::sync::Arc;

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
    sliding_log, sliding_window, two_bucket,
};
use tollgate_core::decide::{expires_at, join};
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, ChargePosition, Cost, Deduplication, Limit, LimitStatus,
    MAX_EXACT, Millis, Operation, Reading, StoredState, Timestamp, assess, decide,
};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn limit(algorithm: Algorithm) -> Limit {
    Limit::new("limit", algorithm).unwrap()
}

fn sliding_window(window: u64, precision: u64) -> Limit {
    let step = SlidingWindow::new(9, Millis::new(window), Millis::new(precision));
    limit(Algorithm::SlidingWindow(step.unwrap()))
}

fn two_bucket(window: u64) -> Limit {
    limit(Algorithm::TwoBucket(TwoBucket::new(9, Millis::new(window)).unwrap()))
}

fn blocks(blocks: &[(u64, u64)]) -> Cell {
    let block = |&(number, used)| sliding_window::Block { number, used };
    Cell::SlidingWindow(sliding_window::State { blocks: blocks.iter().map(block).collect() })
}

fn buckets(bucket: u64, previous: u64, current: u64) -> Cell {
    Cell::TwoBucket(two_bucket::State { bucket, previous, current })
}

/// A block or a bucket that begins after the last exact time is not valid, whatever the time.
#[test]
fn a_state_counts_until_the_last_exact_time() {
    let (present, discarded) = ((StoredState::Present, 4), (StoredState::Discarded, 0));
    let after = MAX_EXACT / 2 + 1;
    for (limit, cell, now, expected) in [
        (sliding_window(10, 1), blocks(&[(MAX_EXACT, 4)]), MAX_EXACT, present),
        (sliding_window(10, 2), blocks(&[(after, 4)]), MAX_EXACT, discarded),
        (two_bucket(1), buckets(MAX_EXACT, 0, 4), MAX_EXACT, present),
        (two_bucket(2), buckets(after, 0, 4), MAX_EXACT, discarded),
        (two_bucket(2), buckets(after / 2, 0, 4), NOW.as_millis() + 1, discarded),
    ] {
        let reading = assess(Some(&cell), &limit, Cost::ONE, Timestamp::from_millis(now));
        assert_eq!((reading.found, reading.used), expected, "{cell:?} at {now}");
    }
}

/// Only the newest block or entry can be empty. Cells with other empty ones are not decoded.
#[test]
fn a_join_keeps_the_newest_of_the_empty_blocks_and_entries() {
    let window = sliding_window(1_000, 1);
    let log = limit(Algorithm::SlidingLog(SlidingLog::new(9, Millis::new(1_000)).unwrap()));
    let entries = |entries: &[(u64, u64)]| {
        let entry = |&(at, used)| sliding_log::Entry { at: Timestamp::from_millis(at), used };
        Cell::SlidingLog(sliding_log::State { entries: entries.iter().map(entry).collect() })
    };
    let start = NOW.as_millis();
    let one = [(start + 1, 3), (start + 5, 0)];
    let other = [(start + 2, 2), (start + 6, 0)];
    let both = [(start + 1, 3), (start + 2, 2), (start + 6, 0)];
    let now = NOW.after(Millis::new(6));
    for (one, other) in [(one, other), (other, one)] {
        for (limit, one, other, both) in [
            (&window, blocks(&one), blocks(&other), blocks(&both)),
            (&log, entries(&one), entries(&other), entries(&both)),
        ] {
            let joined = join(Some(one), other, limit, now).unwrap();
            assert_eq!(joined, both);
            assert_eq!(Cell::from_bytes(&joined.to_bytes()), Some(both));
        }
    }
}

#[test]
fn an_empty_bucket_expires_one_window_after_the_one_before_it() {
    let limit = two_bucket(1_000);
    let ends = |previous, current| expires_at(&buckets(5, previous, current), &limit).as_millis();
    assert_eq!((ends(3, 0), ends(3, 1), ends(0, 1)), (6_000, 7_000, 7_000));
}

/// Two charges of one bucket are refunded. The first refund fills the bucket so far that the second
/// can return only the tokens that are missing.
#[test]
fn a_refund_of_a_bucket_returns_no_more_than_is_missing() {
    let step = TokenBucket::new(10, Millis::from_secs(10), 10).unwrap();
    let limit = limit(Algorithm::TokenBucket(step));
    let (cost, later) = (Cost::up_to(5), NOW.after(Millis::from_secs(3)));
    let charge = |id| Operation::Charge { cost, id: ChargeId(id) };
    let refund = |id, position: ChargePosition| {
        let deduplication = Deduplication::Unneeded;
        Operation::Refund { cost, position, id: ChargeId(id), deduplication }
    };
    let (one, cell) = decide(None, &limit, charge(1), NOW);
    let (two, cell) = decide(cell, &limit, charge(2), NOW);
    let (first, cell) = decide(cell, &limit, refund(1, one.position), NOW);
    assert_eq!((first.refunded, first.used), (5, 5));
    let (second, _) = decide(cell, &limit, refund(2, two.position), later);
    assert_eq!((second.refunded, second.used), (2, 0));
}

#[test]
fn a_refund_reports_the_state_that_it_found() {
    let step = Concurrency::new(5, Millis::from_secs(60)).unwrap();
    let limit = limit(Algorithm::Concurrency(step));
    let (cost, id) = (Cost::ONE, ChargeId(1));
    let (charged, cell) = decide(None, &limit, Operation::Charge { cost, id }, NOW);
    let (position, deduplication) = (charged.position, Deduplication::Unneeded);
    let refund = Operation::Refund { cost, position, id, deduplication };
    let (refunded, _) = decide(cell, &limit, refund, NOW);
    assert_eq!(
        (charged.found, refunded.found, refunded.refunded),
        (StoredState::Missing, StoredState::Present, 1)
    );
}

/// A settlement on a concurrency limit releases the whole permit, once.
#[test]
fn a_permit_is_released_once() {
    let step = Concurrency::new(5, Millis::from_secs(60)).unwrap();
    let limit = limit(Algorithm::Concurrency(step));
    let (cost, id) = (Cost::up_to(3), ChargeId(1));
    let (charged, cell) = decide(None, &limit, Operation::Charge { cost, id }, NOW);
    let settlement = Operation::Settle { id, position: charged.position, cost: Cost::ONE };
    let (first, cell) = decide(cell, &limit, settlement, NOW);
    assert_eq!((first.admission, first.refunded, first.used), (Admission::Now, 3, 0));
    let (second, _) = decide(cell, &limit, settlement, NOW);
    assert_eq!((second.admission, second.refunded), (Admission::Never, 0));
}

/// The oldest entries of a log are merged only if it has more entries than the largest quota.
#[test]
fn a_log_has_as_many_entries_as_the_largest_quota() {
    let most = sliding_log::MAX_QUOTA;
    let limit = limit(Algorithm::SlidingLog(SlidingLog::new(most, Millis::from_secs(60)).unwrap()));
    let at = |index| NOW.after(Millis::new(index));
    let entries: Vec<_> =
        (0..most).map(|index| sliding_log::Entry { at: at(index), used: 1 }).collect();
    let cell = Cell::SlidingLog(sliding_log::State { entries: entries[1..].to_vec() });
    let charge = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let (reading, next) = decide(Some(cell), &limit, charge, at(most));
    assert_eq!((reading.admission, reading.used), (Admission::Now, most));
    let Some(Cell::SlidingLog(next)) = next else { panic!("{next:?}") };
    assert_eq!((next.entries.len() as u64, next.entries[0]), (most, entries[1]));
}

/// A status that was read in one window and is charged in the next one.
#[test]
fn a_charge_after_the_reset_begins_with_nothing_used() {
    let step = FixedWindow::new(5, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    let limit = Arc::new(limit(Algorithm::FixedWindow(step)));
    let full_reset_at = NOW.after(Millis::new(10));
    let admission = Admission::Now;
    let seen =
        Reading { used: 3, admission, fits_again: admission, full_reset_at, ..Reading::default() };
    for (at, used, resets_at) in
        [(NOW, 4, full_reset_at), (full_reset_at, 1, full_reset_at.after(Millis::from_secs(60)))]
    {
        let charged = LimitStatus::new(Arc::clone(&limit), Cost::ONE, &seen).charged(at);
        assert_eq!((charged.used, charged.remaining), (used, 5 - used));
        assert_eq!((charged.resets_at, charged.full_reset_at), (resets_at, resets_at));
    }
}
