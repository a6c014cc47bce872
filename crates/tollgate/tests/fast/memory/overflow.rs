//! Tests of the effects of clients that fill the store, and of the bounds of these effects.

use tollgate::model::{
    Admission, Charge, ChargeId, ChargePosition, Cost, DecisionSource, Deduplication, Limit,
    Operation, Readings, Timestamp,
};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;

use super::world::*;

fn call(
    store: &Memory,
    now: Timestamp,
    limit: &Limit,
    who: &str,
    operation: Operation,
) -> Readings {
    store.apply_now(now, &[Charge { limit, subject: &subject(who), operation }]).unwrap()
}

fn named(name: &str, limit: &Limit) -> Limit {
    Limit::new(name, *limit.algorithm()).unwrap()
}

#[test]
fn a_full_store_admits_no_newcomer_beyond_its_quota() {
    let store = Memory::new(Bounds { max_entries: 20_000, ..Bounds::default() });
    let invented = named("per-token", &fixed_window(1, 3_600_000));
    let login = named("login", &fixed_window(5, 3_600_000));
    for number in 0..30_000 {
        is_admitted(&store, at(number / 10), &invented, &format!("invented-{number}"));
    }
    let filled = store.stats();
    assert!(filled.overflow >= 10_000, "{filled:?}");
    // New subjects of another limit are counted exactly.
    for number in 0..20 {
        let who = format!("honest-{number}");
        for attempt in 0..20 {
            let readings = call(&store, at(3_100), &login, &who, take(1, attempt));
            assert_eq!(readings.source(), DecisionSource::Store, "{who}");
            assert_eq!(readings[0].admission == Admission::Now, attempt < 5, "{who}, {attempt}");
        }
    }
    assert_eq!(store.stats().overflow, filled.overflow);
    // New subjects of the attacked limit are not admitted in large numbers.
    let admitted = (0..5_000)
        .filter(|number| is_admitted(&store, at(3_200), &invented, &format!("late-{number}")));
    assert_eq!(admitted.count(), 0);
}

#[test]
fn what_a_limit_is_guaranteed_is_exact_whatever_others_hold() {
    let bounds = Bounds { max_entries: 20_000, ..Bounds::default() };
    let store = Memory::new(bounds);
    let invented = named("per-token", &fixed_window(1, 3_600_000));
    let login = named("login", &fixed_window(5, 3_600_000));
    for number in 0..25_000 {
        is_admitted(&store, START, &invented, &format!("invented-{number}"));
    }
    let guaranteed = bounds.guaranteed_entries(2);
    assert_eq!(guaranteed, 5_000);
    // The hash spreads the subjects randomly over the shards.
    let honest = guaranteed as u64 * 9 / 10;
    let overflow = store.stats().overflow;
    for number in 0..honest {
        assert!(is_admitted(&store, START, &login, &format!("honest-{number}")));
        is_admitted(&store, START, &invented, &format!("more-{number}"));
    }
    for number in 0..honest {
        assert_eq!(used(&store, START, &login, &format!("honest-{number}")), 1);
    }
    assert_eq!(store.stats().overflow - overflow, honest, "those of the other limit alone");
    let stats = store.limit_stats([&invented, &login]);
    assert_eq!(stats[1].entries as u64, honest);
    assert!(stats[0].entries <= 20_000 - honest as usize);
}

#[test]
fn permits_and_reservations_of_one_limit_leave_room_for_others() {
    let store = store_of(2_000);
    let flights = concurrency(1, 3_600_000);
    let tokens = named("tokens", &fixed_window(10, 3_600_000));
    let login = named("login", &fixed_window(5, 3_600_000));
    for number in 0..3_000 {
        let who = format!("invented-{number}");
        call(&store, START, &flights, &who, take(1, number));
        let reserve =
            Operation::Reserve { cost: Cost::ONE, id: ChargeId(number), until: at(60_000) };
        call(&store, START, &tokens, &who, reserve);
    }
    for number in 0..300 {
        let readings = call(&store, START, &login, &format!("honest-{number}"), take(1, 0));
        assert_eq!(
            (readings[0].admission, readings.source()),
            (Admission::Now, DecisionSource::Store)
        );
    }
    let pinned: usize =
        store.limit_stats([&flights, &tokens]).iter().map(|stats| stats.pinned).sum();
    assert!((500..=1_000).contains(&pinned), "{pinned}");
}

/// Creates a store without room for entries, which counts every subject by overflow counters.
fn no_entries() -> Memory {
    store_of(0)
}

#[test]
fn every_algorithm_keeps_its_quota_by_overflow() {
    for limit in [
        fixed_window(5, 10_000),
        sliding_window(5, 10_000, 100),
        sliding_log(5, 10_000),
        token_bucket(5, 10_000, 5),
        concurrency(5, 10_000),
        two_bucket(5, 10_000),
    ] {
        let store = no_entries();
        let apply = |now, operation| {
            let readings = call(&store, now, &limit, "who", operation);
            (readings[0], readings.source())
        };
        for id in 0..5 {
            let (reading, source) = apply(START, take(1, id));
            assert_eq!(
                (reading.admission, source),
                (Admission::Now, DecisionSource::Overflow),
                "{limit:?}"
            );
            assert_eq!(reading.used, id as u64 + 1, "{limit:?}");
        }
        let (refused, source) = apply(START, take(1, 9));
        assert!(matches!(refused.admission, Admission::At(_)), "{refused:?}");
        assert_eq!((refused.used, source), (5, DecisionSource::Overflow), "{limit:?}");
        assert_eq!(apply(START, take(0, 9)).0.used, 5, "a peek of {limit:?}");
        assert_eq!(store.stats().entries, 0);
        let Admission::At(ready_at) = refused.admission else { unreachable!() };
        assert_eq!(apply(ready_at, take(1, 10)).0.admission, Admission::Now, "{limit:?}");
    }
}

/// The bug: an overflow counter counted the units of the previous bucket in full until they had
/// expired, and refused charges that fitted.
#[test]
fn the_units_of_the_previous_bucket_did_not_fade_by_overflow() {
    let (overflow, exact, limit) = (no_entries(), Memory::default(), two_bucket(5, 10_000));
    for second in 0..60 {
        let decide = |store: &Memory| {
            let take = take(1, second.into());
            let reading = call(store, at(second * 1_000), &limit, "who", take)[0];
            (reading.admission, reading.used)
        };
        assert_eq!(decide(&overflow), decide(&exact), "after {second} s");
    }
}

#[test]
fn a_refund_by_overflow_returns_what_was_charged_there() {
    for limit in [
        fixed_window(5, 10_000),
        sliding_window(5, 10_000, 100),
        sliding_log(5, 10_000),
        token_bucket(5, 10_000, 5),
        concurrency(5, 10_000),
        two_bucket(5, 10_000),
    ] {
        let store = no_entries();
        let first = call(&store, START, &limit, "who", take(2, 1))[0];
        call(&store, START, &limit, "who", take(3, 2));
        let (cost, deduplication) = (Cost::new(2).unwrap(), Deduplication::Unneeded);
        let back = |position| Operation::Refund { cost, position, id: ChargeId(1), deduplication };
        // Units that were charged to an entry do not belong to the overflow counter.
        if !matches!(limit.algorithm(), tollgate::model::Algorithm::Concurrency(_)) {
            let entry = ChargePosition(first.position.0 & ((1 << 53) - 1));
            assert_eq!(call(&store, START, &limit, "who", back(entry))[0].refunded, 0);
        }
        let refunded = call(&store, START, &limit, "who", back(first.position))[0];
        assert_eq!((refunded.refunded, refunded.used), (2, 3), "{limit:?}");
        assert_eq!(call(&store, START, &limit, "who", take(2, 3))[0].admission, Admission::Now);
        assert_ne!(call(&store, START, &limit, "who", take(1, 4))[0].admission, Admission::Now);
    }
}

#[test]
fn reservations_by_overflow_are_settled_extended_and_run_out() {
    for limit in [fixed_window(9, 60_000), sliding_log(9, 60_000), token_bucket(9, 60_000, 9)] {
        let store = no_entries();
        let reserve = |id: u128, cost: u64| Operation::Reserve {
            cost: Cost::new(cost).unwrap(),
            id: ChargeId(id),
            until: at(1_000),
        };
        let first = call(&store, START, &limit, "who", reserve(1, 4))[0];
        let second = call(&store, START, &limit, "who", reserve(2, 5))[0];
        assert_eq!(
            (second.admission, second.used, second.reserved),
            (Admission::Now, 9, 9),
            "{limit:?}"
        );
        assert_ne!(call(&store, START, &limit, "who", take(1, 3))[0].admission, Admission::Now);
        let settle =
            Operation::Settle { id: ChargeId(1), position: first.position, cost: Cost::ONE };
        let settled = call(&store, START, &limit, "who", settle)[0];
        assert_eq!(
            (settled.admission, settled.refunded, settled.used),
            (Admission::Now, 3, 6),
            "{limit:?}"
        );
        assert_eq!(call(&store, START, &limit, "who", settle)[0].admission, Admission::Never);
        let extend =
            Operation::Extend { id: ChargeId(2), position: second.position, until: at(2_000) };
        assert_eq!(call(&store, START, &limit, "who", extend)[0].admission, Admission::Now);
        let look = Operation::Peek { cost: Cost::ONE };
        assert_eq!(call(&store, at(1_500), &limit, "who", look)[0].reserved, 5, "{limit:?}");
        assert_eq!(call(&store, at(2_000), &limit, "who", look)[0].reserved, 0, "{limit:?}");
    }
}

#[test]
fn a_permit_by_overflow_is_renewed_and_stays_one_when_an_entry_has_room() {
    let store = store_of(2);
    let flights = concurrency(2, 10_000);
    let other = named("other", &concurrency(1, 5_000));
    // All entries that may be pinned are pinned.
    call(&store, START, &other, "a", take(1, 1));
    let taken = call(&store, START, &flights, "who", take(1, 2));
    assert_eq!((taken[0].admission, taken.source()), (Admission::Now, DecisionSource::Overflow));
    let renew = Operation::Renew { id: ChargeId(2) };
    assert_eq!(call(&store, at(4_000), &flights, "who", renew)[0].admission, Admission::Now);
    // The other permit ends. The next one gets an entry, which takes over the first permit.
    let second = call(&store, at(6_000), &flights, "who", take(1, 3));
    assert_eq!(
        (second[0].admission, second[0].used, second.source()),
        (Admission::Now, 2, DecisionSource::Store)
    );
    assert_ne!(call(&store, at(6_000), &flights, "who", take(1, 4))[0].admission, Admission::Now);
    assert_eq!(call(&store, at(9_000), &flights, "who", renew)[0].admission, Admission::Now);
    assert_ne!(call(&store, at(15_000), &flights, "who", take(2, 5))[0].admission, Admission::Now);
    let (position, id, deduplication) = (taken[0].position, ChargeId(2), Deduplication::Unneeded);
    let back = Operation::Refund { cost: Cost::ONE, position, id, deduplication };
    assert_eq!(call(&store, at(15_000), &flights, "who", back)[0].refunded, 1);
    assert_eq!(call(&store, at(15_000), &flights, "who", back)[0].refunded, 0);
    assert_eq!(call(&store, at(15_000), &flights, "who", take(1, 6))[0].admission, Admission::Now);
    assert_ne!(call(&store, at(15_000), &flights, "who", take(1, 7))[0].admission, Admission::Now);
}

#[test]
fn counters_go_when_they_are_over_and_limits_take_the_places_of_limits_that_are_gone() {
    let store = Memory::new(Bounds { max_entries: 0, max_bytes: 64 * 1024 });
    for generation in 0..1_000_u64 {
        let limit = named(&format!("limit-{generation}"), &fixed_window(1, 1_000));
        let now = at(generation * 10_000);
        assert!(is_admitted(&store, now, &limit, "who"), "{generation}");
        assert!(!is_admitted(&store, now, &limit, "who"), "{generation}");
        // The store removes expired entries while it is used.
        for _ in 0..256 {
            used(&store, now, &limit, "somebody");
        }
        let stats = store.stats();
        assert!(stats.bytes <= 64 * 1024, "{stats:?}");
    }
}

#[test]
fn limits_beyond_the_most_are_refused_where_they_find_no_room() {
    let store = store_of(0);
    let limits = tollgate::store::memory::MAX_LIMITS;
    let admitted = (0..limits + 10).filter(|number| {
        let limit = named(&format!("limit-{number}"), &fixed_window(5, 1_000));
        is_admitted(&store, START, &limit, "who")
    });
    assert_eq!(admitted.count(), limits);
    assert_eq!(store.stats().full, 10);
}

#[test]
fn ten_million_invented_users_pass_no_limit_and_take_no_more_memory() {
    let bounds = Bounds { max_entries: 50_000, max_bytes: 8 << 20 };
    let store = Memory::new(bounds);
    let core = fixed_window(60, 3_600_000);
    let login = named("login", &fixed_window(5, 3_600_000));
    for number in 0..95 {
        for _ in 0..60 {
            assert!(is_admitted(&store, START, &core, &format!("at-limit-{number}")));
        }
    }
    for number in 0..10_000_000_u64 {
        is_admitted(&store, at(number / 1_000), &core, &format!("invented-{number}"));
        if number.is_multiple_of(100_000) {
            let stats = store.stats();
            assert!(stats.bytes <= bounds.max_bytes, "{stats:?}");
            assert!(stats.entries <= bounds.max_entries, "{stats:?}");
        }
    }
    let now = at(10_000);
    let is_in = |number| is_admitted(&store, now, &core, &format!("at-limit-{number}"));
    assert_eq!((0..95).filter(|number| is_in(*number)).count(), 0);
    for number in 0..50 {
        let who = format!("honest-{number}");
        let admitted = (0..20).filter(|_| is_admitted(&store, now, &login, &who)).count();
        assert_eq!(admitted, 5, "{who}");
    }
}
