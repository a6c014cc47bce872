//! Tests in which threads use one store, with many interleavings of the threads' operations.
//!
//! At each use of a lock or an atomic number, another thread may run. `shuttle` chooses that thread
//! at random, and reports a deadlock. This module compiles only with `--cfg shuttle`:
//!
//! ```sh
//! RUSTFLAGS="--cfg shuttle" cargo test --profile schedules -p tollgate --lib schedules
//! ```

use std::sync::Arc;

use shuttle::thread;
use tollgate_core::algo::{Anchor, Concurrency, FixedWindow};
use tollgate_core::{
    Algorithm, Charge, ChargeId, ChargePosition, Cost, Deduplication, KeyedHash, Limit, Millis,
    Operation, Readings, Subject, Timestamp, Value,
};

use super::pool::Pool;
use super::{Bounds, Memory};

/// The number of interleavings that each test runs.
const SCHEDULES: usize = 20_000;
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const MINUTE: Millis = Millis::from_secs(60);

struct Plain;

impl KeyedHash for Plain {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        let mut hash = [0; 16];
        bytes.iter().zip(&mut hash).for_each(|(byte, to)| *to = *byte);
        hash
    }
}

fn subject(name: &str) -> Subject {
    Subject::new([("user", Value::Clear(name.as_bytes()))], &Plain)
}

fn limit(name: &str, quota: u64) -> Limit {
    let window = FixedWindow::new(quota, MINUTE, Anchor::FirstRequest).unwrap();
    Limit::new(name, Algorithm::FixedWindow(window)).unwrap()
}

const fn take(id: u128) -> Operation {
    Operation::Charge { cost: Cost::ONE, id: ChargeId(id) }
}

fn apply(store: &Memory, limits: &[&Limit], subject: &Subject, operation: Operation) -> Readings {
    let charge = |limit: &&'_ Limit| (*limit).clone();
    let limits: Vec<Limit> = limits.iter().map(charge).collect();
    let charges: Vec<_> = limits.iter().map(|limit| Charge { limit, subject, operation }).collect();
    store.apply_now(NOW, &charges).unwrap()
}

fn used(store: &Memory, limit: &Limit, subject: &Subject) -> u64 {
    apply(store, &[limit], subject, Operation::Peek { cost: Cost::PEEK })[0].used
}

/// Creates a store with several shards, so a call for two subjects usually locks two of them.
fn sharded() -> Arc<Memory> {
    let store = Memory::new(Bounds { max_entries: 32 * 2_048, max_bytes: 64 << 20 });
    assert!(store.shards.len() > 4, "{} shards", store.shards.len());
    Arc::new(store)
}

/// Calls that name the same limits in opposite orders do not deadlock. Each call is charged to all
/// of its limits or to none.
#[test]
fn calls_over_several_shards_are_whole_and_never_wait_in_a_circle() {
    calls_are_whole(["a", "b", "c"]);
}

/// A call for one subject locks one shard, because all entries of the subject are in this shard.
#[test]
fn calls_of_one_subject_are_whole() {
    calls_are_whole(["a", "a", "a"]);
}

/// Charges three limits from several threads, each limit for one of `subjects`.
fn calls_are_whole(subjects: [&'static str; 3]) {
    shuttle::check_random(
        move || {
            let store = sharded();
            let names: [&'static [usize]; 3] = [&[0, 1, 2], &[2, 1, 0], &[1]];
            let limits = [limit("one", 3), limit("two", 4), limit("three", 9)];
            let subjects = subjects.map(subject);
            let threads: Vec<_> = names
                .into_iter()
                .map(|order| {
                    let (store, limits) = (Arc::clone(&store), limits.clone());
                    let subjects = subjects.clone();
                    thread::spawn(move || {
                        let charge = |index: &usize| Charge {
                            limit: &limits[*index],
                            subject: &subjects[*index],
                            operation: take(1),
                        };
                        let charges: Vec<_> = order.iter().map(charge).collect();
                        (0..2)
                            .filter(|_| store.apply_now(NOW, &charges).unwrap().all_admitted())
                            .count()
                    })
                })
                .collect();
            let admitted: Vec<_> =
                threads.into_iter().map(|thread| thread.join().unwrap() as u64).collect();
            let (over_all, over_two) = (admitted[0] + admitted[1], admitted[2]);
            assert_eq!(used(&store, &limits[0], &subjects[0]), over_all);
            assert_eq!(used(&store, &limits[1], &subjects[1]), over_all + over_two);
            assert_eq!(used(&store, &limits[2], &subjects[2]), over_all);
            assert!(over_all <= 3 && over_all + over_two <= 4, "{admitted:?}");
            // No charge that fits was refused.
            assert_eq!(over_all + over_two, 4, "{admitted:?}");
        },
        SCHEDULES,
    );
}

/// A refund that arrives twice counts once, whatever the order of the refunds and other charges.
#[test]
fn a_refund_that_two_threads_send_counts_once() {
    shuttle::check_random(
        || {
            let store = sharded();
            let (limit, who) = (limit("one", 5), subject("a"));
            let taken = apply(&store, &[&limit], &who, take(7));
            let position: ChargePosition = taken[0].position;
            let refund = Operation::Refund {
                cost: Cost::ONE,
                position,
                id: ChargeId(7),
                deduplication: Deduplication::ById,
            };
            let operations = [refund, refund, take(8)];
            let threads = operations.map(|operation| {
                let (store, limit, who) = (Arc::clone(&store), limit.clone(), who.clone());
                thread::spawn(move || apply(&store, &[&limit], &who, operation)[0].refunded)
            });
            let refunded: u64 = threads.map(|thread| thread.join().unwrap()).into_iter().sum();
            assert_eq!((refunded, used(&store, &limit, &who)), (1, 1));
        },
        SCHEDULES,
    );
}

/// A full store admits no subject beyond its quota.
#[test]
fn newcomers_of_a_full_store_are_never_beyond_the_quota() {
    shuttle::check_random(
        || {
            let store = Arc::new(Memory::new(Bounds { max_entries: 2, max_bytes: 16 << 10 }));
            let limit = limit("one", 2);
            let threads: Vec<_> = ["a", "b", "c"]
                .into_iter()
                .map(|name| {
                    let (store, limit, who) = (Arc::clone(&store), limit.clone(), subject(name));
                    thread::spawn(move || {
                        (0..3)
                            .filter(|_| apply(&store, &[&limit], &who, take(1)).all_admitted())
                            .count()
                    })
                })
                .collect();
            for thread in threads {
                assert!(thread.join().unwrap() <= 2);
            }
            assert!(store.stats().entries <= 2);
        },
        SCHEDULES,
    );
}

/// States of more than 4 KiB share one budget of bytes. The threads never exceed this budget, and
/// at the end all of its bytes are free again.
#[test]
fn the_pool_of_large_states_is_never_exceeded_and_is_returned() {
    shuttle::check_random(
        || {
            let pool = Arc::new(Pool::new(1_000));
            let threads: Vec<_> = [(1, 300), (1, 300), (2, 400)]
                .into_iter()
                .map(|(bucket, bytes)| {
                    let pool = Arc::clone(&pool);
                    thread::spawn(move || {
                        for _ in 0..2 {
                            if pool.try_allocate(bucket, bytes) {
                                assert!(pool.used(bucket).0 <= 1_000);
                                pool.release(bucket, bytes);
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!((pool.used(1), pool.used(2)), ((0, 0), (0, 0)));
        },
        SCHEDULES,
    );
}

/// Permits that several threads take and release stay within the quota. The permits of a subject
/// are a list outside the table, which grows and shrinks.
#[test]
fn permits_that_threads_take_and_release_stay_within_the_quota() {
    shuttle::check_random(
        || {
            let store = sharded();
            let permits = Concurrency::new(2, MINUTE).unwrap();
            let limit = Limit::new("permits", Algorithm::Concurrency(permits)).unwrap();
            let who = subject("a");
            let threads: Vec<_> = (1..=3_u128)
                .map(|id| {
                    let (store, limit, who) = (Arc::clone(&store), limit.clone(), who.clone());
                    thread::spawn(move || {
                        let taken = apply(&store, &[&limit], &who, take(id));
                        assert!(taken[0].used <= 2);
                        if taken.all_admitted() {
                            let operation = Operation::Refund {
                                cost: Cost::ONE,
                                position: taken[0].position,
                                id: ChargeId(id),
                                deduplication: Deduplication::Unneeded,
                            };
                            let refunded = apply(&store, &[&limit], &who, operation);
                            assert_eq!(refunded[0].refunded, 1);
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(used(&store, &limit, &who), 0);
        },
        SCHEDULES,
    );
}
