use tollgate::model::{
    Admission, Charge, ChargePosition, Cost, DecisionSource, KeyedHash, Limit, Operation, Subject,
    Value,
};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;

use super::world::*;

#[test]
fn a_store_full_of_limits_in_force_counts_newcomers_by_overflow_and_goes_on_for_others() {
    let store = store_of(3);
    let (limit, two) = (fixed_window(1, 1_000), token_bucket(2, 10_000, 2));
    assert!(is_admitted(&store, START, &limit, "a"));
    assert!(is_admitted(&store, START, &limit, "b"));
    assert_eq!(
        apply_one(&store, START, &two, &subject("c"), take(2, 0)).unwrap().admission,
        Admission::Now
    );
    let before = store.stats();
    let newcomer = [Charge { limit: &limit, subject: &subject("d"), operation: take(1, 0) }];
    for admission in [Admission::Now, Admission::At(at(1_000))] {
        let readings = store.apply_now(START, &newcomer).unwrap();
        assert_eq!(
            (readings[0].admission, readings.source()),
            (admission, DecisionSource::Overflow)
        );
    }
    assert_eq!(store.stats().overflow, before.overflow + 2);
    assert_eq!((store.stats().entries, store.stats().full), (3, 0));
    // Existing subjects continue to be admitted and refused.
    assert!(!is_admitted(&store, START, &limit, "a"));
    assert!(is_admitted(&store, at(5_000), &two, "c"));
    // A peek shows the counter's state.
    assert_eq!(used(&store, START, &limit, "d"), 1);
}

#[test]
fn a_call_without_room_for_all_of_it_changes_nothing() {
    // This many bytes are enough for one entry, and for no overflow counter.
    let store = Memory::new(Bounds { max_entries: 2, max_bytes: 900 });
    let (limit, other) = (fixed_window(5, 1_000), concurrency(1_000, 1_000));
    assert!(is_admitted(&store, START, &limit, "a"));
    let charges = [
        Charge { limit: &limit, subject: &subject("a"), operation: take(1, 0) },
        Charge { limit: &other, subject: &subject("b"), operation: take(900, 0) },
    ];
    let refused = store.apply_now(START, &charges).unwrap();
    assert_eq!((refused[0].admission, refused[0].used), (Admission::Now, 1));
    // A retry is useful in a second, and the reading shows no room for its cost.
    assert_eq!((refused[1].admission, refused[1].used), (Admission::At(at(1_000)), 101));
    assert_eq!(store.stats().full, 1);
    assert_eq!(used(&store, START, &limit, "a"), 1);
    assert_eq!(used(&store, START, &other, "b"), 0);
}

#[test]
fn peeks_refusals_refunds_and_renewals_add_no_entries() {
    let store = store_of(100);
    let (limit, flights) = (fixed_window(5, 1_000), concurrency(5, 1_000));
    let who = subject("who");
    for nothing in [
        take(0, 0),
        take(6, 0),
        refund(1, ChargePosition(0), 1),
        Operation::Renew { id: Default::default() },
    ] {
        apply_one(&store, START, &limit, &who, nothing).unwrap();
        apply_one(&store, START, &flights, &who, nothing).unwrap();
    }
    assert_eq!(store.stats().entries, 0);
}

#[test]
fn the_bound_on_bytes_holds_whatever_is_kept() {
    let bounds = Bounds { max_entries: usize::MAX, max_bytes: 256 * 1024 };
    let store = Memory::new(bounds);
    let limits = [
        fixed_window(100, 600_000),
        sliding_window(1_000, 600_000, 1_000),
        sliding_log(1_000, 600_000),
        token_bucket(1_000, 600_000, 100),
    ];
    for number in 0..40_000_u64 {
        let who = format!("{}", number * number % 7_919);
        let limit = &limits[number as usize % limits.len()];
        apply_one(&store, at(number * 10), limit, &subject(&who), take(1, number.into())).unwrap();
        assert!(store.stats().bytes <= bounds.max_bytes, "{:?} at {number}", store.stats());
    }
    assert!(store.stats().evicted > 0, "{:?}", store.stats());
}

#[test]
fn leases_without_end_meet_the_bound_on_bytes() {
    let bounds = Bounds { max_entries: 1_000, max_bytes: 64 * 1024 };
    let store = Memory::new(bounds);
    let flights = concurrency(10_000, 60_000);
    let who = subject("who");
    let admitted = (0..10_000)
        .filter(|id| {
            apply_one(&store, START, &flights, &who, take(1, *id)).unwrap().admission
                == Admission::Now
        })
        .count();
    assert!((100..1_000).contains(&admitted), "{admitted} leases of 32 bytes in 64 KiB");
    assert!(admitted * 32 >= bounds.largest_state(), "{admitted} leases");
    assert!(store.stats().bytes <= bounds.max_bytes);
    assert_eq!(used(&store, START, &flights, "who"), admitted as u64);
    // A refunded unit can be charged again.
    let back = apply_one(&store, START, &flights, &who, refund(1, ChargePosition(0), 3)).unwrap();
    assert_eq!(back.refunded, 1);
    assert_eq!(
        apply_one(&store, START, &flights, &who, take(1, 77_777)).unwrap().admission,
        Admission::Now
    );
}

#[test]
fn subjects_of_a_mebibyte_take_no_more_than_others() {
    let store = store_of(1_000);
    let limit = fixed_window(1, 1_000);
    let long = |end: u8| {
        let mut name = vec![b'n'; 1 << 20];
        name.push(end);
        let name = String::from_utf8(name).unwrap();
        struct Unused;
        impl KeyedHash for Unused {
            fn hash(&self, _: &[u8]) -> [u8; 16] {
                unreachable!("short values are kept")
            }
        }
        Subject::new([(name.as_str(), Value::Absent)], &Unused)
    };
    let (a, b) = (long(b'a'), long(b'b'));
    assert!(a.as_bytes().len() > 1 << 20);
    for who in [&a, &b] {
        assert_eq!(
            apply_one(&store, START, &limit, who, take(1, 0)).unwrap().admission,
            Admission::Now
        );
        assert_ne!(
            apply_one(&store, START, &limit, who, take(1, 0)).unwrap().admission,
            Admission::Now
        );
    }
    assert!(store.stats().bytes < 1_000, "{:?}", store.stats());
}

#[test]
fn a_store_for_nothing_holds_nothing() {
    for bounds in
        [Bounds { max_entries: 0, max_bytes: 1 << 20 }, Bounds { max_entries: 10, max_bytes: 0 }]
    {
        let store = Memory::new(bounds);
        let limit = fixed_window(1, 1_000);
        let peek = Operation::Charge { cost: Cost::PEEK, id: Default::default() };
        assert_eq!(
            apply_one(&store, START, &limit, &subject("a"), peek).unwrap().admission,
            Admission::Now
        );
        let admitted = (0..5).filter(|_| is_admitted(&store, START, &limit, "a")).count();
        // Admitted by an overflow counter, if there is memory for one.
        assert_eq!(admitted, usize::from(bounds.max_bytes > 0));
        assert!(store.stats().bytes <= bounds.max_bytes && store.stats().entries == 0);
    }
}

#[test]
fn limits_of_one_name_and_another_kind_take_over_from_each_other() {
    let store = store_of(100);
    let who = subject("who");
    let named = |limit: Limit| Limit::new("same", *limit.algorithm()).unwrap();
    let fixed = named(fixed_window(5, 60_000));
    let sliding = named(sliding_window(5, 60_000, 1_000));
    for round in 1..=4 {
        for limit in [&fixed, &sliding] {
            let reading = apply_one(&store, START, limit, &who, take(1, 0)).unwrap();
            assert_eq!((reading.admission, reading.used), (Admission::Now, 1), "round {round}");
        }
    }
    assert_eq!(store.stats().entries, 1);
    assert_eq!(store.stats().discarded, 7);
}
