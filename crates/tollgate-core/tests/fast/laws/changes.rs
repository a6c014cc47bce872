//! Decisions on the counters of a limit after another definition has replaced the limit.

use proptest::prelude::*;
use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::decide::{expires_at, join};
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, Cost, Limit, Millis, OnChange, Operation, StoredState,
    Timestamp, assess, decide,
};

use crate::laws::world::{
    START, concurrency, config, fixed_window, sliding_log, sliding_window, token_bucket, two_bucket,
};

pub(crate) fn any_algorithm() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        fixed_window(),
        sliding_window(),
        two_bucket(),
        sliding_log(),
        token_bucket(),
        concurrency(),
    ]
}

/// Generates an old and a new definition that can use the same counters.
fn related() -> impl Strategy<Value = (Algorithm, Algorithm)> {
    let numbers = (any_algorithm(), 1..12_u64, 1..120_u64, 1..12_u64);
    numbers.prop_map(|(old, quota, window, burst)| {
        let window = Millis::new(window);
        let new = match old {
            Algorithm::FixedWindow(old) => {
                FixedWindow::new(quota, window, old.anchor()).map(Algorithm::FixedWindow)
            }
            Algorithm::SlidingWindow(old) => {
                let window = window.max(old.precision());
                SlidingWindow::new(quota, window, old.precision()).map(Algorithm::SlidingWindow)
            }
            Algorithm::SlidingLog(_) => SlidingLog::new(quota, window).map(Algorithm::SlidingLog),
            Algorithm::TwoBucket(old) => {
                TwoBucket::new(quota, old.window()).map(Algorithm::TwoBucket)
            }
            Algorithm::TokenBucket(old) => {
                TokenBucket::new(quota, old.window(), burst).map(Algorithm::TokenBucket)
            }
            Algorithm::Concurrency(old) => {
                Concurrency::new(quota, old.permit_ttl()).map(Algorithm::Concurrency)
            }
        };
        (old, new.unwrap())
    })
}

fn limit(algorithm: Algorithm, on_change: OnChange) -> Limit {
    Limit::new("core", algorithm).unwrap().with_on_change(on_change)
}

/// Charges `costs` on `limit`. Returns the counters after that, and the time.
fn charged(limit: &Limit, costs: &[(u64, u64)]) -> (Option<Cell>, Timestamp) {
    let (mut cell, mut now) = (None, Timestamp::from_millis(START));
    for (id, (after, cost)) in (1..).zip(costs) {
        now = now.after(Millis::new(*after));
        let operation = Operation::Charge { cost: Cost::new(*cost).unwrap(), id: ChargeId(id) };
        cell = decide(cell, limit, operation, now).1;
    }
    (cell, now)
}

fn costs() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..30_u64, 1..4_u64), 1..12)
}

/// Returns the used units and the reset time that `limit` reads from `cell`.
fn used(cell: Option<&Cell>, limit: &Limit, now: Timestamp) -> (u64, Timestamp) {
    let reading = assess(cell, limit, Cost::PEEK, now);
    (reading.used, reading.full_reset_at)
}

/// Returns whether units that are free by the definition `old` can be used by the definition `new`.
fn counts_longer(new: &Limit, old: &Limit) -> bool {
    match (new.algorithm(), old.algorithm()) {
        (Algorithm::TokenBucket(new), Algorithm::TokenBucket(old)) => {
            new.quota() < old.quota() || new.burst() > old.burst()
        }
        (Algorithm::SlidingWindow(_) | Algorithm::SlidingLog(_), _) => new.window() > old.window(),
        _ => false,
    }
}

fn fixed(quota: u64, window: u64) -> Limit {
    let window = FixedWindow::new(quota, Millis::new(window), Anchor::FirstRequest);
    limit(Algorithm::FixedWindow(window.unwrap()), OnChange::Keep)
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn a_fixed_window_runs_on_whatever_its_numbers_become(
        (old, new) in (fixed_window(), fixed_window()), costs in costs(),
    ) {
        let (old, new) = (limit(old, OnChange::Keep), limit(new, OnChange::Keep));
        prop_assert_eq!(old.state_digest(), new.state_digest());
        let new = new.replacing(&old);
        let (cell, now) = charged(&old, &costs);
        let before = assess(cell.as_ref(), &old, Cost::PEEK, now);
        prop_assume!(before.found == StoredState::Present);
        prop_assert_eq!(used(cell.as_ref(), &new, now), used(cell.as_ref(), &old, now));
        // The test reads the last millisecond of the current window, and the first millisecond
        // after it.
        let last = Timestamp::from_millis(before.full_reset_at.as_millis() - 1);
        prop_assert_eq!(used(cell.as_ref(), &new, last).0, before.used);
        prop_assert_eq!(used(cell.as_ref(), &new, before.full_reset_at).0, 0);
    }

    #[test]
    fn what_shares_counters_admits_no_more_than_its_own_quota(
        (old, new) in related(), costs in costs(), cost in 1..12_u64,
    ) {
        let (old, new) = (limit(old, OnChange::Keep), limit(new, OnChange::Keep));
        prop_assert_eq!(old.state_digest(), new.state_digest());
        let new = new.replacing(&old);
        let (cell, now) = charged(&old, &costs);
        let before = assess(cell.as_ref(), &new, Cost::PEEK, now);
        prop_assert_ne!(before.found, StoredState::Discarded);
        let operation = Operation::Charge { cost: Cost::new(cost).unwrap(), id: ChargeId(99) };
        let (reading, _) = decide(cell, &new, operation, now);
        if reading.admission == Admission::Now {
            prop_assert!(reading.used <= new.capacity(), "{reading:?}");
        } else {
            prop_assert_eq!(reading.used, before.used);
        }
    }

    #[test]
    fn what_was_used_stays_used((old, new) in related(), costs in costs()) {
        let (old, new) = (limit(old, OnChange::Keep), limit(new, OnChange::Keep));
        let new = new.replacing(&old);
        let (cell, now) = charged(&old, &costs);
        let (before, after) = (used(cell.as_ref(), &old, now).0, used(cell.as_ref(), &new, now).0);
        match new.algorithm() {
            // The remaining tokens stay, but at most the new burst. Since the last charge, tokens
            // arrive by the new quota.
            Algorithm::TokenBucket(bucket) if before > 0 => {
                let Algorithm::TokenBucket(former) = old.algorithm() else { unreachable!() };
                let left = old.capacity() - before;
                let expected = new.capacity().saturating_sub(left);
                prop_assert!(bucket.quota() < former.quota() || after <= expected);
                prop_assert!(bucket.quota() > former.quota() || after >= expected);
            }
            Algorithm::TokenBucket(_) => {}
            // Only the charges within the new window count.
            Algorithm::SlidingWindow(_) | Algorithm::SlidingLog(_) => {
                prop_assert!(new.window() > old.window() || after <= before);
                prop_assert!(new.window() < old.window() || after >= before);
            }
            _ => prop_assert_eq!(after, before),
        }
    }

    /// A store deletes a counter when its units are free by the definition of its last charge.
    #[test]
    fn an_expired_counter_is_empty_unless_the_new_definition_counts_longer(
        (old, new) in related(), costs in costs(),
    ) {
        let (old, new) = (limit(old, OnChange::Keep), limit(new, OnChange::Keep));
        let new = new.replacing(&old);
        let (cell, _) = charged(&old, &costs);
        let Some(cell) = cell else { return Ok(()) };
        let lost = used(Some(&cell), &new, expires_at(&cell, &old)).0;
        prop_assert!(lost == 0 || counts_longer(&new, &old), "{lost}");
    }

    #[test]
    fn what_scales_goes_on_with_the_same_part_used(
        old in any_algorithm(), new in any_algorithm(), costs in costs(),
    ) {
        let (old, new) = (limit(old, OnChange::Scale), limit(new, OnChange::Scale));
        let (cell, now) = charged(&old, &costs);
        let new = new.with_predecessor(&old, now);
        prop_assert_eq!(new.predecessor(now).is_some(), old.algorithm() != new.algorithm());
        let before = assess(cell.as_ref(), &old, Cost::PEEK, now);
        let scaled = cell.as_ref().and_then(|cell| new.scaled(cell, &old, now));
        let in_flight = |limit: &Limit| matches!(limit.algorithm(), Algorithm::Concurrency(_));
        if in_flight(&old) || in_flight(&new) {
            prop_assert_eq!(scaled, None);
            return Ok(());
        }
        let after = assess(scaled.as_ref(), &new, Cost::PEEK, now);
        let expected = (before.used * new.capacity()).div_ceil(old.capacity());
        prop_assert_eq!(after.used, expected.min(new.capacity()));
        // After the change, a client with remaining units is not refused, and a client without
        // remaining units is not admitted.
        prop_assert_eq!(before.used == 0, after.used == 0);
        prop_assert!(before.used < old.capacity() || after.admission != Admission::Now);
        if let (Algorithm::FixedWindow(_), Some(_)) = (new.algorithm(), &scaled) {
            prop_assert!(after.full_reset_at <= before.full_reset_at, "no window ends later");
        }
        // Taking over the usage a second time changes nothing.
        if let Some(cell) = scaled {
            let twice = join(Some(cell.clone()), cell.clone(), &new, now);
            prop_assert_eq!(twice, Some(cell));
        }
    }

    #[test]
    fn counters_are_shared_only_where_both_read_them_alike(
        old in any_algorithm(), new in any_algorithm(),
    ) {
        let digest = |algorithm, on_change| limit(algorithm, on_change).state_digest();
        let fresh = |algorithm| digest(algorithm, OnChange::Restart);
        let kept = |algorithm| digest(algorithm, OnChange::Keep);
        prop_assert_eq!(fresh(old) == fresh(new), old == new);
        prop_assert_ne!(fresh(new), kept(new));
        if std::mem::discriminant(&old) != std::mem::discriminant(&new) {
            prop_assert_ne!(kept(old), kept(new));
        }
    }
}

#[test]
fn a_quota_below_what_is_used_leaves_nothing_and_not_less() {
    let old = fixed(100, 60_000);
    let (cell, now) = charged(&old, &[(0, 60)]);
    let new = fixed(10, 60_000).replacing(&old);
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(2) };
    let (reading, _) = decide(cell, &new, operation, now);
    assert_eq!(
        (reading.used, reading.admission),
        (60, Admission::At(now.after(Millis::new(60_000))))
    );
    let status = tollgate_core::LimitStatus::new(new.into(), Cost::ONE, &reading);
    assert_eq!(status.remaining, 0);
}

#[test]
fn a_shorter_window_ends_the_longer_one_when_it_was_to_end() {
    let old = fixed(100, 3_600_000);
    let (cell, now) = charged(&old, &[(0, 60)]);
    let shorter = fixed(100, 1_000);
    let ends_at = now.after(Millis::new(3_600_000));
    let known = shorter.clone().replacing(&old);
    assert_eq!(used(cell.as_ref(), &known, now), (60, ends_at));
    // The window also keeps its end over several changes. The tolerance for times in the future is
    // not larger than the longest of the replaced windows requires.
    let shortest = fixed(100, 10).replacing(&known);
    assert_eq!(used(cell.as_ref(), &shortest, now), (60, ends_at));
    assert_eq!(shortest.skew_tolerance().get(), 5_000 + 3_600_000 - 10);
    // A limit that does not replace the longer window treats its state as from too far in the
    // future.
    assert_eq!(assess(cell.as_ref(), &shorter, Cost::PEEK, now).found, StoredState::Discarded);
}

/// Returns the units that `limit` admits at `now` one by one, and the counters after that.
fn admitted(mut cell: Option<Cell>, limit: &Limit, now: Timestamp) -> (u64, Option<Cell>) {
    for (units, id) in (0..).zip(1_000..) {
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(id) };
        let (reading, next) = decide(cell.clone(), limit, operation, now);
        if reading.admission != Admission::Now {
            return (units, cell);
        }
        cell = next;
    }
    unreachable!()
}

#[test]
fn a_definition_that_counts_longer_costs_its_capacity_once() {
    let (second, minute) = (Millis::new(1_000), Millis::new(60_000));
    let keep = |algorithm| limit(algorithm, OnChange::Keep);
    let sliding =
        |window| keep(Algorithm::SlidingWindow(SlidingWindow::new(10, window, second).unwrap()));
    let log = |window| keep(Algorithm::SlidingLog(SlidingLog::new(10, window).unwrap()));
    let bucket = |quota, burst| {
        keep(Algorithm::TokenBucket(TokenBucket::new(quota, minute, burst).unwrap()))
    };
    // The old and the new definition, and the units that the new one admits with the old counter.
    let cases = [
        (sliding(second), sliding(minute), 0),
        (log(second), log(minute), 0),
        (bucket(60, 10), bucket(6, 10), 1),
        (bucket(60, 10), bucket(60, 20), 10),
    ];
    for (old, new, exact) in cases {
        let new = new.replacing(&old);
        let (cell, _) = charged(&old, &[(0, 10)]);
        let expires_at = expires_at(cell.as_ref().unwrap(), &old);
        assert_eq!(admitted(cell.clone(), &new, expires_at).0, exact, "{new:?}");
        // The store has deleted the counter.
        let (units, unused) = admitted(None, &new, expires_at);
        assert_eq!(units, new.capacity(), "{new:?}");
        assert_eq!(admitted(unused, &new, expires_at).0, 0, "{new:?}");
        // A charge that is counted before sets the expiry again.
        let before = Timestamp::from_millis(expires_at.as_millis() - 1);
        let (units, counted) = admitted(cell, &new, before);
        let is_later = counted.is_some_and(|it| decide::expires_at(&it, &new) > expires_at);
        assert!(units == 0 || is_later, "{new:?}");
    }
}

#[test]
fn limits_of_two_names_never_share_counters() {
    let of = |name: &str, on_change| {
        let same = *fixed(1, 1).algorithm();
        Limit::new(name, same).unwrap().with_on_change(on_change).state_digest()
    };
    for on_change in [OnChange::Keep, OnChange::Restart] {
        assert_ne!(of("core", on_change), of("cor", on_change));
        assert_eq!(of("core", on_change), of("core", on_change));
    }
    assert_eq!(of("core", OnChange::Keep), fixed(5, 5).name_digest());
}

#[test]
fn a_limit_takes_over_until_the_windows_of_the_one_before_are_over() {
    let scaling = |quota| {
        let window = FixedWindow::new(quota, Millis::new(1_000), Anchor::FirstRequest).unwrap();
        limit(Algorithm::FixedWindow(window), OnChange::Scale)
    };
    let now = Timestamp::from_millis(START);
    let second = scaling(20).with_predecessor(&scaling(10), now);
    let over = now.after(Millis::new(1_000 + 5_000));
    let last = Timestamp::from_millis(over.as_millis() - 1);
    assert_eq!(second.predecessor(last), Some(&scaling(10)));
    assert_eq!(second.predecessor(over), None);
    // A reload that does not change this limit keeps the predecessor. After another change, this
    // definition is the predecessor.
    let again = scaling(20).with_predecessor(&second, now.after(Millis::new(500)));
    assert_eq!(again.predecessor(last), Some(&scaling(10)));
    let third = scaling(40).with_predecessor(&again, now);
    assert_eq!(third.predecessor(now), Some(&scaling(20)));
    for on_change in [OnChange::Keep, OnChange::Restart] {
        let other = limit(*scaling(40).algorithm(), on_change);
        assert_eq!(other.with_predecessor(&second, now).predecessor(now), None);
    }
}
