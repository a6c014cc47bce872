//! Tests of states of one subject, up to the largest state that a limit may have.

use tollgate::model::{Admission, ChargePosition};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;

use super::world::*;

fn admitted(store: &Memory, quota: u64, calls: u128) -> u64 {
    let flights = concurrency(quota, 3_600_000);
    let who = subject("who");
    (0..calls)
        .filter(|id| {
            apply_one(store, START, &flights, &who, take(1, *id)).unwrap().admission
                == Admission::Now
        })
        .count() as u64
}

#[test]
fn a_concurrency_limit_of_5_000_refuses_beyond_it_in_the_default_store() {
    assert_eq!(admitted(&Memory::default(), 5_000, 5_500), 5_000);
}

#[test]
fn a_concurrency_limit_of_10_000_refuses_beyond_it_in_the_default_store() {
    let store = Memory::default();
    assert_eq!(admitted(&store, 10_000, 12_000), 10_000);
    // Another subject of the limit can have as much.
    let flights = concurrency(10_000, 3_600_000);
    let other = subject("other");
    for id in 0..10_000 {
        assert_eq!(
            apply_one(&store, START, &flights, &other, take(1, id)).unwrap().admission,
            Admission::Now
        );
    }
    assert_ne!(
        apply_one(&store, START, &flights, &other, take(1, 10_000)).unwrap().admission,
        Admission::Now
    );
    let freed =
        apply_one(&store, START, &flights, &other, refund(1, ChargePosition(0), 3)).unwrap();
    assert_eq!((freed.refunded, freed.used), (1, 9_999));
    let stats = store.stats();
    assert!(stats.bytes <= Bounds::default().max_bytes && stats.full == 0, "{stats:?}");
}

#[test]
fn a_sliding_log_of_10_000_moments_is_exact_in_the_default_store() {
    let (store, who) = (Memory::default(), subject("who"));
    let log = sliding_log(10_000, 3_600_000);
    let fits = |millis| {
        apply_one(&store, at(millis), &log, &who, take(1, 0)).unwrap().admission == Admission::Now
    };
    assert_eq!((0..12_000).filter(|millis| fits(*millis)).count(), 10_000);
    // The first entry leaves the window, and so on.
    assert!(fits(3_600_000) && !fits(3_600_000) && fits(3_600_001));
}

#[test]
fn the_largest_state_of_a_store_fits_whatever_its_size() {
    for max_bytes in [1 << 18, 1 << 20, 10 << 20, 64 << 20] {
        let bounds = Bounds { max_bytes, ..Bounds::default() };
        let quota = (bounds.largest_state() / 32).min(10_000) as u64;
        let store = Memory::new(bounds);
        assert_eq!(admitted(&store, quota, u128::from(quota) + 10), quota, "{bounds:?}");
        assert!(store.stats().bytes <= max_bytes);
    }
}

#[test]
fn what_is_there_and_cannot_grow_is_refused() {
    let bounds = Bounds { max_entries: 100, max_bytes: 32 * 1024 };
    let store = Memory::new(bounds);
    let count = admitted(&store, 10_000, 10_000);
    assert!((32..1_000).contains(&count), "{count}");
    assert!(store.stats().full >= 9_000, "{:?}", store.stats());
    assert!(store.stats().bytes <= bounds.max_bytes);
}
