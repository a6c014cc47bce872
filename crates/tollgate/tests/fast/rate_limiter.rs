//! The limiter of keys.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tollgate::model::{Charge, Readings, Store, StoreError, Timestamp};
use tollgate::store::Memory;
use tollgate::{Decision, ManualClock, OnStoreError, Precision, Quota, RateLimiter};

const HOUR: Duration = Duration::from_secs(3_600);

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_millis(1_700_000_000_000)))
}

fn algorithms() -> [Quota; 7] {
    let quota = || Quota::new(3, HOUR);
    [
        quota(),
        quota().fixed_window(),
        quota().calendar_window(),
        quota().sliding(Precision::minutes(5)),
        quota().two_bucket(),
        quota().sliding_log(),
        Quota::concurrent(3).permit_ttl(HOUR),
    ]
}

#[tokio::test]
async fn every_algorithm_admits_the_quota_and_no_more() {
    for quota in algorithms() {
        let clock = clock();
        let limiter = RateLimiter::per_key(quota.clone()).clock(clock.clone());
        for remaining in [2, 1, 0] {
            let Decision::Admitted(admitted) = limiter.try_check("alice") else {
                panic!("{quota:?}")
            };
            assert_eq!((admitted.limit(), admitted.remaining()), (3, remaining), "{quota:?}");
        }
        let refused = limiter.check("alice").await.into_result().unwrap_err();
        let wait = match quota == Quota::concurrent(3).permit_ttl(HOUR) {
            // A permit is free when a request ends: the wait is a suggestion, and the bound is exact.
            true => {
                assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)));
                HOUR
            }
            false => refused.retry_after().unwrap(),
        };
        assert!(limiter.try_check("bob").is_admitted(), "{quota:?}");
        clock.advance_by(wait - Duration::from_millis(1));
        assert!(!limiter.try_check("alice").is_admitted(), "{quota:?} a millisecond early");
        clock.advance_by(Duration::from_millis(1));
        assert!(limiter.try_check("alice").is_admitted(), "{quota:?} after {wait:?}");
    }
}

#[tokio::test]
async fn every_algorithm_returns_what_is_refunded() {
    for quota in algorithms() {
        let limiter = RateLimiter::per_key(quota.clone()).clock(clock());
        let admitted = limiter.check_n("alice", 3).await.into_result().unwrap();
        assert!(!limiter.try_check("alice").is_admitted());
        limiter.refund("alice", admitted).await.unwrap();
        assert_eq!(limiter.peek("alice").await.unwrap().remaining(), 3, "{quota:?}");
    }
}

/// The bug: a permit could only be returned together with the units of the other quotas.
#[tokio::test]
async fn the_end_of_a_request_refunded_its_other_quotas() {
    let quotas = [Quota::concurrent(1), Quota::new(3, HOUR).fixed_window()];
    let limiter = RateLimiter::per_key(quotas).clock(clock());
    for _ in 0..3 {
        let admitted = limiter.check("alice").await.into_result().unwrap();
        assert!(!limiter.try_check("alice").is_admitted());
        limiter.release("alice", admitted).await.unwrap();
    }
    let refused = limiter.check("alice").await.into_result().unwrap_err();
    assert_eq!(refused.retry_after(), Some(HOUR));
    // Without a concurrent quota, there is nothing to release.
    let limiter = RateLimiter::per_key(Quota::per_hour(1).fixed_window()).clock(clock());
    let admitted = limiter.check("alice").await.into_result().unwrap();
    limiter.release("alice", admitted).await.unwrap();
    assert_eq!(limiter.try_peek("alice").remaining(), 0);
}

#[tokio::test]
async fn a_key_has_one_counter_however_it_is_charged() {
    let long = "k".repeat(200);
    for key in ["", "alice", &"k".repeat(128), &long] {
        let limiter = RateLimiter::per_key(Quota::per_hour(10));
        assert!(limiter.try_check(key).is_admitted());
        assert!(limiter.check_n(&key.to_owned(), 2).await.is_admitted());
        assert_eq!(limiter.try_peek(key.as_bytes()).used(), 3, "{}", key.len());
        assert_eq!(limiter.try_peek("other").used(), 0);
    }
}

#[test]
fn keys_of_other_types_are_written_as_text() {
    let limiter = RateLimiter::per_key(Quota::per_hour(10));
    let address: IpAddr = "2001:db8::7".parse().unwrap();
    assert!(limiter.try_check(&42_u64).is_admitted());
    assert!(limiter.try_check(&address).is_admitted());
    assert_eq!(limiter.try_peek("42").used(), 1);
    assert_eq!(limiter.try_peek("2001:db8::7").used(), 1);
    assert!(limiter.try_check(&("a", "bc")).is_admitted());
    assert_eq!(limiter.try_peek(&("ab", "c")).used(), 0);
    assert_eq!(limiter.try_peek(&("a", "bc")).used(), 1);
}

#[test]
fn several_quotas_count_together_or_not_at_all() {
    let limiter = RateLimiter::per_key([
        Quota::per_second(2).fixed_window(),
        Quota::per_hour(10).fixed_window(),
    ]);
    assert_eq!(limiter.try_check_n("alice", 2).remaining(), 0);
    let refused = limiter.try_check("alice").into_result().unwrap_err();
    assert!(refused.retry_after().unwrap() <= Duration::from_secs(1));
    assert_eq!(limiter.try_check_n("alice", 11).retry_after(), None);
}

#[test]
fn wrong_quotas_are_named() {
    for (quotas, text) in [
        (vec![Quota::per_second(0)], "limit `limit`: the quota must be at least 1"),
        (
            vec![Quota::new(1, Duration::from_micros(1_500))],
            "limit `limit`: the window 1.5ms must be a whole number of milliseconds",
        ),
        (
            vec![Quota::per_second(1).named("a"), Quota::per_hour(1).named("a")],
            "limit `a`: two quotas have this name; call `named` on one of them",
        ),
        (vec![], "a limiter needs at least one quota"),
    ] {
        assert_eq!(RateLimiter::try_per_key(quotas).unwrap_err().to_string(), text);
    }
}

#[tokio::test]
async fn limiters_of_one_store_and_name_share_counters() {
    let store = Arc::new(Memory::default());
    let limiter =
        |name: &str| RateLimiter::per_key(Quota::per_hour(5).named(name)).store(store.clone());
    assert!(limiter("reads").check_n("alice", 5).await.is_admitted());
    assert!(!limiter("reads").check("alice").await.is_admitted());
    assert!(limiter("writes").check("alice").await.is_admitted());
}

#[tokio::test]
async fn a_reservation_is_settled_once_and_expires() {
    let clock = clock();
    let limiter = RateLimiter::per_key(Quota::per_hour(100).fixed_window()).clock(clock.clone());
    let minute = Duration::from_secs(60);
    let late = limiter.reserve("alice", 30, minute).await.unwrap();
    assert_eq!(limiter.peek("alice").await.unwrap().used(), 30);
    clock.advance_by(minute);
    assert_eq!(limiter.peek("alice").await.unwrap().used(), 0);
    assert!(!limiter.settle(late, 30).await.unwrap().was_held());
    let reservation = limiter.reserve("alice", 30, minute).await.unwrap();
    let settled = limiter.settle(reservation, 10).await.unwrap();
    assert_eq!((settled.refunded(), settled.added(), settled.was_held()), (20, 0, true));
    assert!(limiter.reserve("alice", 91, minute).await.is_err());
}

#[tokio::test]
async fn a_wait_beyond_the_deadline_is_refused_at_once() {
    let limiter = RateLimiter::per_key(Quota::per_hour(1));
    let deadline = Duration::from_secs(60);
    assert!(limiter.until_ready("alice", deadline).await.is_ok());
    let refused = limiter.until_ready("alice", deadline).await.unwrap_err();
    assert!(refused.retry_after().unwrap() > deadline);
    assert!(limiter.until_n_ready("alice", 2, deadline).await.unwrap_err().retry_after().is_none());
}

/// A store that never answers.
struct Unavailable;

impl Store for Unavailable {
    async fn apply(&self, _: Timestamp, _: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Err(StoreError::Unavailable)
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_reported() {
    let limiter = || RateLimiter::per_key(Quota::per_hour(1)).store(Unavailable);
    let admitted = limiter().check("alice").await.into_result().unwrap();
    assert_eq!(admitted.store_error(), Some(StoreError::Unavailable));
    assert!(limiter().refund("alice", admitted).await.is_ok());
    let strict = limiter().on_store_error(OnStoreError::Refuse);
    let refused = strict.check("alice").await.into_result().unwrap_err();
    assert!(refused.to_string().contains("cannot be reached"), "{refused}");
    assert!(strict.peek("alice").await.is_err());
}
