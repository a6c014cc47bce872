//! The wait that a concurrency limit suggests to a client that found no free permit.

use std::sync::Arc;
use std::time::Duration;

use tollgate::limiter::Decision;
use tollgate::model::algo::Concurrency;
use tollgate::model::policy::{LimitBinding, LimitRef, MatchMode, RequestMatch, Rule};
use tollgate::model::{Algorithm, Cost, Limit, Millis, Policy, RequestAttributes, Timestamp};
use tollgate::store::Memory;
use tollgate::{Limiter, ManualClock, Quota, RateLimiter};

const SECOND: Millis = Millis::from_secs(1);

fn limiter() -> (Limiter<Memory>, Arc<ManualClock>) {
    let limit = Concurrency::new(1, Millis::from_secs(60)).unwrap();
    let limit = Arc::new(Limit::new("running", Algorithm::Concurrency(limit)).unwrap());
    let used = vec![LimitRef { limit: 0, cost: Cost::ONE }];
    let rule = Rule::new("all", RequestMatch::default(), used);
    let limits = vec![LimitBinding { limit, per: vec![] }];
    let policy = Policy::new(vec![], limits, vec![rule], MatchMode::FirstMatch).unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_700_000_000_000)));
    let limiter = Limiter::new(policy, Memory::default()).with_clock(Arc::clone(&clock));
    (limiter, clock)
}

async fn check(limiter: &Limiter<Memory>) -> Decision {
    let request = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    limiter.check(&request).await
}

#[tokio::test]
async fn a_full_concurrency_limit_suggests_the_observed_hold_time_and_not_the_longest_permit() {
    let (limiter, clock) = limiter();
    let mut admitted = check(&limiter).await;
    // Nothing was observed yet.
    let refused = check(&limiter).await.evaluation;
    assert_eq!(refused.retry_after(), Some(SECOND));
    assert_eq!(refused.statuses[0].resets_at, refused.now.after(SECOND));

    clock.advance(Millis::from_secs(5));
    limiter.refund(admitted.receipt.take().unwrap()).await.unwrap();
    let mut admitted = check(&limiter).await;
    assert_eq!(check(&limiter).await.evaluation.retry_after(), Some(Millis::from_secs(5)));

    // A peek reports the same wait.
    let request = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let (now, policy) = (limiter.now(), limiter.policy());
    let planned = limiter.plan_at(now, &policy, &request).enforced;
    let peek = limiter.peek_at(now, planned).await.unwrap().evaluation;
    assert_eq!(peek.retry_after(), Some(Millis::from_secs(5)));

    // Never later than the permit ends.
    clock.advance(Millis::from_secs(58));
    assert_eq!(check(&limiter).await.evaluation.retry_after(), Some(Millis::from_secs(2)));

    // Short holds bring the suggestion down to a second.
    limiter.refund(admitted.receipt.take().unwrap()).await.unwrap();
    for _ in 0..64 {
        let mut admitted = check(&limiter).await;
        clock.advance(Millis::new(10));
        limiter.refund(admitted.receipt.take().unwrap()).await.unwrap();
    }
    let _held = check(&limiter).await;
    assert_eq!(check(&limiter).await.evaluation.retry_after(), Some(SECOND));
}

#[tokio::test]
async fn a_limiter_of_keys_suggests_the_observed_hold_time_too() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let permits = Quota::concurrent(1).permit_ttl(Duration::from_secs(60));
    // One limit is decided by a path of its own.
    for quotas in [vec![permits.clone()], vec![permits, Quota::per_second(1_000)]] {
        let clock = Arc::new(ManualClock::default());
        let limiter = RateLimiter::per_key(quotas).clock(clock.clone());
        let admitted = limiter.check("alice").await.into_result().unwrap();
        assert_eq!(limiter.try_check("alice").retry_after(), seconds(1), "nothing observed yet");

        clock.advance_by(Duration::from_secs(5));
        limiter.refund("alice", admitted).await.unwrap();
        let _held = limiter.check("alice").await.into_result().unwrap();
        let refused = limiter.check("alice").await;
        assert_eq!(
            (refused.retry_after(), refused.reset_after()),
            (seconds(5), seconds(5).unwrap())
        );
        assert_eq!(limiter.try_peek("alice").retry_after(), seconds(5));

        // Never later than the permit ends.
        clock.advance_by(Duration::from_secs(58));
        assert_eq!(limiter.check("alice").await.retry_after(), seconds(2));
    }
}
