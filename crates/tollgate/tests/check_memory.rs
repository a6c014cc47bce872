//! A check of a key that has an entry allocates nothing.
//!
//! A separate test binary, because it counts the allocations of the whole process.

use std::alloc::System;
use std::net::Ipv4Addr;

use cap::Cap;
use tollgate::{Key, Quota, RateLimiter};

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

/// Returns the bytes that `work` allocates, including bytes that `work` frees again.
fn allocated_by(work: impl FnOnce()) -> usize {
    let before = ALLOCATED.total_allocated();
    work();
    ALLOCATED.total_allocated() - before
}

/// Returns the fewest bytes that one of five runs of `work` allocates. A thread of the test harness
/// may allocate during one of the runs, but an allocation of `work` occurs in each run.
fn least_allocated_by(mut work: impl FnMut()) -> usize {
    (0..5).map(|_| allocated_by(&mut work)).min().expect("five runs")
}

fn checks<K: Key>(limiter: &RateLimiter, keys: &[K]) {
    for _ in 0..20 {
        for key in keys {
            let _ = limiter.try_check(key);
        }
    }
}

#[test]
fn a_check_of_a_known_key_allocates_nothing() {
    let users: Vec<String> = (0..500).map(|user| format!("user-{user}")).collect();
    let ids: Vec<u64> = (0..500).collect();
    let addresses: Vec<Ipv4Addr> = (0..500).map(Ipv4Addr::from_bits).collect();
    let pairs: Vec<(&str, u64)> = ids.iter().map(|id| ("tenant", *id)).collect();
    // The first refusals are among the charges: 20 for each key.
    for quota in [Quota::per_hour(10), Quota::per_hour(10).fixed_window()] {
        let limiter = RateLimiter::per_key(quota);
        let each = |limiter: &RateLimiter| {
            checks(limiter, &users);
            checks(limiter, &ids);
            checks(limiter, &addresses);
            checks(limiter, &pairs);
        };
        assert!(allocated_by(|| each(&limiter)) > 0, "entries are allocated");
        assert_eq!(least_allocated_by(|| each(&limiter)), 0);
    }

    let limiter = RateLimiter::per_key(Quota::per_hour(1_000_000));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert!(limiter.check("alice").await.is_admitted());
        let mut least = usize::MAX;
        for _ in 0..5 {
            let before = ALLOCATED.total_allocated();
            for _ in 0..1_000 {
                assert!(limiter.check("alice").await.is_admitted());
            }
            least = least.min(ALLOCATED.total_allocated() - before);
        }
        assert_eq!(least, 0);
    });
}
