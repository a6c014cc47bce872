use tollgate::model::{Admission, Charge, Limit};
use tollgate::store::Memory;

use super::world::*;

#[test]
fn an_attacker_with_random_keys_does_not_free_a_client_at_its_limit() {
    let store = store_of(10_000);
    let limit = fixed_window(3, 3_600_000);
    for _ in 0..3 {
        assert!(is_admitted(&store, START, &limit, "victim"));
    }
    assert!(!is_admitted(&store, START, &limit, "victim"));
    for number in 0..100_000 {
        let admitted = is_admitted(&store, at(number / 100), &limit, &format!("attacker-{number}"));
        // Until the evicted subjects have used all three units of the overflow counter, one after
        // the other.
        assert!(admitted || number > 15_000, "{number}");
    }
    assert!(!is_admitted(&store, at(1_000), &limit, "victim"));
    let stats = store.stats();
    assert!(stats.entries <= 10_000, "{stats:?}");
    assert!(stats.evicted > 10_000, "{stats:?}");
    assert_eq!((stats.full, stats.swept), (0, 0), "{stats:?}");
}

#[test]
fn a_client_that_reached_its_limit_without_a_refusal_is_protected() {
    let store = store_of(64);
    let limit = token_bucket(2, 3_600_000, 2);
    for _ in 0..2 {
        assert!(is_admitted(&store, START, &limit, "victim"));
    }
    refuse_a_thousand(&store, &limit, 2);
    assert_eq!(used(&store, START, &limit, "victim"), 2);
}

#[test]
fn a_client_whose_large_charge_was_refused_is_protected() {
    let store = store_of(64);
    let limit = fixed_window(10, 3_600_000);
    let victim = subject("victim");
    assert_eq!(
        apply_one(&store, START, &limit, &victim, take(6, 0)).unwrap().admission,
        Admission::Now
    );
    assert_ne!(
        apply_one(&store, START, &limit, &victim, take(6, 0)).unwrap().admission,
        Admission::Now
    );
    refuse_a_thousand(&store, &limit, 10);
    assert_eq!(used(&store, START, &limit, "victim"), 6);
}

/// Brings a thousand subjects to their limit of `quota` units, and has each of them refused. All of
/// these subjects are protected, so only the entry of another client can be evicted to make room.
fn refuse_a_thousand(store: &Memory, limit: &Limit, quota: u64) {
    for number in 0..1_000 {
        let attacker = subject(&format!("attacker-{number}"));
        for cost in [quota, 1] {
            apply_one(store, START, limit, &attacker, take(cost, 0)).unwrap();
        }
    }
    let stats = store.stats();
    assert!(stats.entries > 32 && stats.overflow > 0, "the store was never full: {stats:?}");
    // The usage alone proves nothing: the overflow counter of an evicted client reports it too.
    assert_eq!(stats.evicted, 0, "{stats:?}");
}

#[test]
fn leases_in_flight_are_protected() {
    let store = store_of(64);
    let (flights, window) = (concurrency(10, 60_000), fixed_window(5, 3_600_000));
    let client = subject("client");
    assert_eq!(
        apply_one(&store, START, &flights, &client, take(1, 7)).unwrap().admission,
        Admission::Now
    );
    for number in 0..1_000 {
        is_admitted(&store, START, &window, &number.to_string());
    }
    assert_eq!(used(&store, START, &flights, "client"), 1);
}

#[test]
fn of_what_is_used_as_little_what_ends_first_goes_first() {
    let store = store_of(4);
    let limit = fixed_window(10, 10_000);
    for (moment, who) in [(30, "fourth"), (0, "first"), (20, "third"), (10, "second")] {
        assert!(is_admitted(&store, at(moment), &limit, who));
    }
    for (gone, new) in [("first", "a"), ("second", "b"), ("third", "c")] {
        assert_eq!(used(&store, at(100), &limit, gone), 1);
        let evicted = store.stats().evicted;
        assert!(is_admitted(&store, at(100), &limit, new));
        assert_eq!(store.stats().evicted, evicted + 1, "{gone} should have made room");
    }
    assert_eq!(used(&store, at(100), &limit, "fourth"), 1);
    assert_eq!(store.stats().evicted, 3);
}

#[test]
fn a_call_does_not_evict_what_it_is_about() {
    let store = store_of(4);
    let limit = fixed_window(10, 10_000);
    let hour = Limit::new("hour", *fixed_window(1_000, 3_600_000).algorithm()).unwrap();
    let who = subject("who");
    assert!(is_admitted(&store, START, &limit, "who"));
    for (moment, other) in [(1, "b"), (2, "c"), (3, "d")] {
        assert!(is_admitted(&store, at(moment), &limit, other));
    }
    let charges = [
        Charge { limit: &limit, subject: &who, operation: take(1, 0) },
        Charge { limit: &hour, subject: &who, operation: take(1, 0) },
    ];
    let readings = store.apply_now(at(6), &charges).unwrap();
    assert_eq!([readings[0].used, readings[1].used], [2, 1]);
    assert_eq!(store.stats().evicted, 1);
}

#[test]
fn what_is_over_makes_room_though_it_was_at_its_limit() {
    let store = store_of(2);
    let limit = fixed_window(1, 1_000);
    assert!(is_admitted(&store, START, &limit, "a"));
    assert!(is_admitted(&store, START, &limit, "b"));
    assert!(is_admitted(&store, at(999), &limit, "c"));
    assert_eq!((store.stats().overflow, store.stats().swept), (1, 0));
    // In one of 512 runs, "d" has the overflow counter that "c" has used up, and is refused.
    is_admitted(&store, at(1_000), &limit, "d");
    let stats = store.stats();
    assert_eq!((stats.entries, stats.swept, stats.evicted, stats.overflow), (1, 2, 0, 1));
}
