use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tollgate::model::{Charge, Limit};

use super::world::*;

#[test]
fn two_hundred_at_once_at_a_limit_of_a_hundred_admit_exactly_a_hundred() {
    for limit in [
        fixed_window(100, 60_000),
        sliding_window(100, 60_000, 1_000),
        sliding_log(100, 60_000),
        token_bucket(100, 3_600_000, 100),
        concurrency(100, 60_000),
    ] {
        let store = store_of(10_000);
        let (start, admitted) = (Barrier::new(200), AtomicU64::new(0));
        thread::scope(|scope| {
            for id in 0..200 {
                let (store, limit, start, admitted) = (&store, &limit, &start, &admitted);
                scope.spawn(move || {
                    start.wait();
                    let charges =
                        [Charge { limit, subject: &subject("all"), operation: take(1, id) }];
                    if store.apply_now(START, &charges).unwrap().all_admitted() {
                        admitted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(admitted.into_inner(), 100, "{}", limit.name());
        assert_eq!(used(&store, START, &limit, "all"), 100, "{}", limit.name());
    }
}

#[test]
fn charges_over_many_limits_are_all_or_nothing_in_whatever_order() {
    const THREADS: u64 = 8;
    const CALLS: u64 = 500;
    let store = store_of(1_000_000);
    let limits = [
        Limit::new("a", *fixed_window(1_500, 60_000).algorithm()).unwrap(),
        Limit::new("b", *sliding_log(1_000, 60_000).algorithm()).unwrap(),
        Limit::new("c", *fixed_window(2_000, 60_000).algorithm()).unwrap(),
        Limit::new("d", *token_bucket(1_200, 86_400_000, 1_200).algorithm()).unwrap(),
        Limit::new("e", *concurrency(3_000, 60_000).algorithm()).unwrap(),
    ];
    let who = subject("all");
    let admitted = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, limits, who, admitted) = (&store, &limits, &who, &admitted);
            scope.spawn(move || {
                for call in 0..CALLS {
                    let operation = take(1, u128::from(thread * CALLS + call));
                    let mut charges: Vec<_> = limits
                        .iter()
                        .map(|limit| Charge { limit, subject: who, operation })
                        .collect();
                    charges.rotate_left(call as usize % limits.len());
                    if thread % 2 == 1 {
                        charges.reverse();
                    }
                    if store.apply_now(START, &charges).unwrap().all_admitted() {
                        admitted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), 1_000);
    for limit in &limits {
        assert_eq!(used(&store, START, limit, "all"), 1_000, "{}", limit.name());
    }
}

#[test]
fn the_readings_are_in_the_order_of_the_charges() {
    let store = store_of(1_000_000);
    let limit = fixed_window(1_000, 60_000);
    let subjects: Vec<_> = (0..20).map(|number| subject(&number.to_string())).collect();
    let charges: Vec<_> = (1..)
        .zip(&subjects)
        .map(|(cost, subject)| Charge { limit: &limit, subject, operation: take(cost, 0) })
        .collect();
    let readings = store.apply_now(START, &charges).unwrap();
    assert!(readings.iter().zip(1..).all(|(reading, cost)| reading.used == cost));
    assert!(store.apply_now(START, &[]).unwrap().is_empty());
}
