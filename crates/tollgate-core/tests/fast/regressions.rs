//! Regression tests of single decisions. Each test is named after the bug that it shows.
#![allow(missing_docs)]

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket, two_bucket,
};
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, ChargePosition, Cost, Deduplication, Limit, MAX_EXACT,
    Millis, OnChange, Operation, Reading, Refusals, ReservationTerms, StoredState, Timestamp,
    assess, decide,
};

struct Counter {
    limit: Limit,
    cell: Option<Cell>,
}

impl Counter {
    fn new(algorithm: Algorithm) -> Self {
        Self { limit: Limit::new("limit", algorithm).unwrap(), cell: None }
    }

    fn apply(&mut self, at: u64, operation: Operation) -> Reading {
        let (reading, cell) =
            decide(self.cell.take(), &self.limit, operation, Timestamp::from_millis(at));
        self.cell = cell;
        reading
    }

    fn take(&mut self, at: u64, units: u64, id: u128) -> Reading {
        self.apply(at, Operation::Charge { cost: Cost::new(units).unwrap(), id: ChargeId(id) })
    }

    fn refund(&mut self, at: u64, units: u64, position: ChargePosition, id: u128) -> Reading {
        let (cost, id) = (Cost::new(units).unwrap(), ChargeId(id));
        self.apply(
            at,
            Operation::Refund { cost, position, id, deduplication: Deduplication::Unneeded },
        )
    }
}

impl Counter {
    fn counting_refusals(mut self) -> Self {
        self.limit = self.limit.with_refusals(Refusals::Counted).unwrap();
        self
    }

    fn reserving(mut self, overdraft: u64) -> Self {
        let terms = ReservationTerms { overdraft, ..ReservationTerms::default() };
        self.limit = self.limit.with_reservation_terms(terms).unwrap();
        self
    }

    fn reserve(&mut self, at: u64, units: u64, id: u128) -> Reading {
        let (cost, until) = (Cost::new(units).unwrap(), Timestamp::from_millis(at + 500));
        self.apply(at, Operation::Reserve { cost, id: ChargeId(id), until })
    }

    fn settle(&mut self, at: u64, units: u64, id: u128) -> Reading {
        let (cost, position) = (Cost::new(units).unwrap(), ChargePosition::default());
        self.apply(at, Operation::Settle { id: ChargeId(id), position, cost })
    }

    /// Charges `units` by another quota of the same limit.
    fn take_by(&mut self, quota: u64, at: u64, units: u64, id: u128) -> Reading {
        let own = self.limit.clone();
        self.limit = own.with_quota(quota, None).unwrap();
        let reading = self.take(at, units, id);
        self.limit = own;
        reading
    }
}

fn sliding_log(quota: u64, window: u64) -> Algorithm {
    Algorithm::SlidingLog(SlidingLog::new(quota, Millis::new(window)).unwrap())
}

fn two_bucket(quota: u64, window: u64) -> Algorithm {
    Algorithm::TwoBucket(TwoBucket::new(quota, Millis::new(window)).unwrap())
}

/// The bug: a refund removed the newest block. The time of that block was lost too, and a lagging
/// clock could then decide at an earlier time, for which older blocks had already been removed.
#[test]
fn a_refund_let_time_run_backwards() {
    let (window, precision) = (Millis::new(10), Millis::new(1));
    for algorithm in [
        Algorithm::SlidingWindow(SlidingWindow::new(2, window, precision).unwrap()),
        Algorithm::SlidingLog(SlidingLog::new(2, window).unwrap()),
    ] {
        let mut counter = Counter::new(algorithm);
        counter.take(100, 2, 1);
        let position = counter.take(110, 1, 2).position;
        assert_eq!(counter.refund(110, 1, position, 2).refunded, 1);
        let behind = counter.take(105, 1, 3);
        assert_eq!(
            behind.position,
            ChargePosition(110),
            "decided at the stored time: {algorithm:?}"
        );
    }
}

/// The bug: after the quota was lowered, buckets with more units than the new quota overflowed 64
/// bits.
#[test]
fn a_lowered_limit_overflowed_the_estimate() {
    let mut counter = Counter::new(two_bucket(1_000, 3_600_000));
    let (previous, current) = (MAX_EXACT, MAX_EXACT);
    counter.cell = Some(Cell::TwoBucket(two_bucket::State { bucket: 1, previous, current }));
    let reading = counter.take(3_600_000, 1, 1);
    assert!(matches!(reading.admission, Admission::At(_)), "{reading:?}");
    assert_eq!(reading.used, 2 * (MAX_EXACT / 2 / 3_600_000));
}

/// The bug: a refund that returned no units changed the time of the state.
#[test]
fn a_refund_of_nothing_changed_the_cell() {
    let bucket = TokenBucket::new(1, Millis::new(10), 10).unwrap();
    let lease = Concurrency::new(5, Millis::new(100)).unwrap();
    for algorithm in
        [two_bucket(5, 100), Algorithm::TokenBucket(bucket), Algorithm::Concurrency(lease)]
    {
        let mut counter = Counter::new(algorithm);
        counter.take(150, 3, 1);
        let before = counter.cell.clone();
        assert_eq!(counter.refund(1_000, 1, ChargePosition::default(), 2).refunded, 0);
        assert_eq!(counter.cell, before, "{algorithm:?}");
    }
}

/// The bug: a refund removed state of another algorithm, or state from too far in the future.
#[test]
fn a_refund_dropped_what_it_cannot_read() {
    let mut counter = Counter::new(two_bucket(5, 100));
    counter.take(150, 3, 1);
    let before = counter.cell.clone();
    let bucket = TokenBucket::new(1, Millis::new(10), 10).unwrap();
    counter.limit = Limit::new("limit", Algorithm::TokenBucket(bucket)).unwrap();
    let reading = counter.refund(150, 1, ChargePosition(1), 1);
    assert_eq!((reading.refunded, reading.found), (0, StoredState::Discarded));
    assert_eq!(counter.cell, before);
}

/// The bug: if a lagging clock renewed a permit, the permit expired earlier than without the
/// renewal.
#[test]
fn a_lagging_clock_cut_a_lease_short() {
    let lease = Concurrency::new(1, Millis::new(1_000)).unwrap();
    let mut counter = Counter::new(Algorithm::Concurrency(lease));
    counter.take(5_000, 1, 1);
    assert_eq!(
        counter.apply(4_500, Operation::Renew { id: ChargeId(1) }).admission,
        Admission::Now
    );
    assert_eq!(counter.take(5_999, 1, 2).admission, Admission::At(Timestamp::from_millis(6_000)));
}

const MINUTE: Millis = Millis::from_secs(60);

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn fixed_window(quota: u64) -> Algorithm {
    Algorithm::FixedWindow(FixedWindow::new(quota, MINUTE, Anchor::Calendar).unwrap())
}

fn scaled(algorithm: Algorithm) -> Limit {
    Limit::new("limit", algorithm).unwrap().with_on_change(OnChange::Scale)
}

/// The bug: an override replaced the quota of a limit with [`OnChange::Scale`], but not the quota
/// of the definition before the change. The used units were multiplied by the ratio of the two
/// quotas.
#[test]
fn an_override_multiplied_the_usage_of_a_scaled_limit() {
    let limit = scaled(fixed_window(200)).with_predecessor(&scaled(fixed_window(100)), NOW);
    let own = limit.with_quota(1_000, None).unwrap();
    let former = own.predecessor(NOW).unwrap();
    assert_eq!(former.capacity(), 1_000);
    let charge = Operation::Charge { cost: Cost::new(500).unwrap(), id: ChargeId(1) };
    let cell = decide(None, former, charge, NOW).1.unwrap();
    let cell = own.scaled(&cell, former, NOW).unwrap();
    assert_eq!(assess(Some(&cell), &own, Cost::PEEK, NOW).used, 500);
}

/// The bug: a limit with [`OnChange::Scale`] refused the quota of a tenant if the definition before
/// the change could not count this quota.
#[test]
fn a_quota_beyond_the_former_definition_was_refused() {
    let log = Algorithm::SlidingLog(SlidingLog::new(5_000, MINUTE).unwrap());
    let limit = scaled(fixed_window(50_000)).with_predecessor(&scaled(log), NOW);
    let quotas = [9_000, 1_000_000].map(|quota| limit.for_tenant(quota, None).unwrap());
    assert_eq!(quotas.each_ref().map(Limit::capacity), [9_000, 1_000_000]);
    let former = quotas.each_ref().map(|own| own.predecessor(NOW).map(Limit::capacity));
    assert_eq!(former, [Some(9_000), None]);
}

/// The bug: the usage under the definition before a change was transferred for one window, or for
/// the fill time of the default quota, although its counters lasted longer.
#[test]
fn the_usage_under_a_former_definition_was_lost_before_it_expired() {
    let bucket = |quota, burst| TokenBucket::new(quota, MINUTE, burst).map(Algorithm::TokenBucket);
    let bucket = |quota, burst| scaled(bucket(quota, burst).unwrap());
    let two_buckets = |quota| scaled(two_bucket(quota, MINUTE.get()));
    let blocks = |quota| SlidingWindow::new(quota, MINUTE, Millis::from_secs(50));
    let blocks = |quota| scaled(Algorithm::SlidingWindow(blocks(quota).unwrap()));
    let own = |limit: Limit| limit.for_tenant(1, Some(1_000)).unwrap();
    for (new, old, seconds) in [
        (own(bucket(120, 120).with_predecessor(&bucket(60, 60), NOW)), bucket(1, 1_000), 60_000),
        (two_buckets(9).with_predecessor(&two_buckets(5), NOW), two_buckets(5), 120),
        (blocks(9).with_predecessor(&blocks(5), NOW), blocks(5), 100),
    ] {
        let end = NOW.after(Millis::from_secs(seconds)).after(old.skew_tolerance());
        let before = Timestamp::from_millis(end.as_millis() - 1);
        assert_eq!(new.predecessor(before).map(Limit::algorithm), Some(old.algorithm()));
        assert_eq!(new.predecessor(end), None, "{old:?}");
    }
}

/// The bug: the log of a subject that had used its overdraft lost its oldest entries, and each
/// further settlement could use the whole overdraft again.
#[test]
fn settlements_of_a_sliding_log_exceeded_the_overdraft() {
    let mut counter = Counter::new(sliding_log(6, 10_000)).reserving(6);
    assert_eq!(counter.reserve(1_000, 1, 1).admission, Admission::Now);
    assert_eq!(counter.reserve(1_001, 1, 2).admission, Admission::Now);
    for id in 3..7 {
        assert_eq!(counter.take(1_002, 1, id).admission, Admission::Now);
    }
    let first = counter.settle(1_003, 7, 1);
    assert_eq!((first.added, first.used), (6, 12));
    let second = counter.settle(1_004, 7, 2);
    assert_eq!((second.added, second.used), (0, 12));
}

/// The bug: a counted refusal by a small quota removed entries that a larger quota still counted.
#[test]
fn a_refusal_by_a_small_quota_freed_units_of_a_sliding_log() {
    let mut counter = Counter::new(sliding_log(6, 10_000)).counting_refusals();
    for id in 0..6 {
        assert_eq!(counter.take(1_000 + id, 1, id.into()).admission, Admission::Now);
    }
    assert_ne!(counter.take_by(2, 1_010, 1, 10).admission, Admission::Now);
    let reading = counter.take(1_011, 1, 11);
    assert_eq!((reading.admission != Admission::Now, reading.used), (true, 6));
}

/// The bug: a charge by a small quota lowered both buckets to that quota in the stored state, so a
/// larger quota could use the units again.
#[test]
fn a_charge_by_a_small_quota_freed_units_of_a_two_bucket() {
    for is_counting in [false, true] {
        let counter = Counter::new(two_bucket(100, 1_000));
        let mut counter = if is_counting { counter.counting_refusals() } else { counter };
        assert_eq!(counter.take(999, 100, 1).admission, Admission::Now);
        assert_ne!(counter.take_by(10, 1_100, 1, 2).admission, Admission::Now);
        // Of the 100 units, 90 still count, and the refusal if it counts.
        let left = if is_counting { 9 } else { 10 };
        assert_eq!(counter.take(1_100, left, 3).used, 100);
        let reading = counter.take(1_100, 1, 4);
        assert_ne!(reading.admission, Admission::Now, "{reading:?}");
    }
}

/// The bug: a bucket with more tokens than the burst of a smaller quota counted as invalid for that
/// quota, and its charge removed the reservations of the subject.
#[test]
fn a_charge_by_a_small_burst_dropped_reservations() {
    let bucket = TokenBucket::new(100, Millis::new(1_000), 100).unwrap();
    let mut counter = Counter::new(Algorithm::TokenBucket(bucket)).reserving(0);
    assert_eq!(counter.reserve(1_000, 10, 1).admission, Admission::Now);
    let reading = counter.take_by(5, 1_000, 1, 2);
    assert_eq!((reading.admission, reading.found), (Admission::Now, StoredState::Present));
    let settled = counter.settle(1_000, 12, 1);
    assert_eq!((settled.admission, settled.added), (Admission::Now, 2));
}
