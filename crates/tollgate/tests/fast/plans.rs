//! A subject that changes its plan keeps its used units and its window, as under an override.

use std::sync::Arc;

use tollgate::limiter::Decision;
use tollgate::model::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate::model::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, QuotasByValue, RequestMatch, Rule, SubjectSource,
};
use tollgate::model::{
    Algorithm, Cost, Headers, Limit, LimitStatus, Millis, OnChange, Policy, RequestAttributes,
    Timestamp,
};
use tollgate::store::Memory;
use tollgate::{Limiter, ManualClock, Revision};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const MINUTE: Millis = Millis::from_secs(60);

fn algorithms() -> [Algorithm; 5] {
    [
        Algorithm::FixedWindow(FixedWindow::new(3, MINUTE, Anchor::FirstRequest).unwrap()),
        Algorithm::SlidingWindow(SlidingWindow::new(3, MINUTE, Millis::from_secs(1)).unwrap()),
        Algorithm::TwoBucket(TwoBucket::new(3, MINUTE).unwrap()),
        Algorithm::SlidingLog(SlidingLog::new(3, MINUTE).unwrap()),
        Algorithm::TokenBucket(TokenBucket::new(3, MINUTE, 3).unwrap()),
    ]
}

/// Returns a policy with a limit of 3 units by default, 5 for the plan `free` and 20 for the plan
/// `pro`.
fn policy(algorithm: Algorithm) -> Policy {
    let dimensions = [("user", "x-user"), ("plan", "x-plan")].map(|(name, header)| Dimension {
        name: name.into(),
        source: SubjectSource::Header { header: header.into() },
    });
    let limit = Limit::new("all", algorithm).unwrap().with_on_change(OnChange::Keep);
    let of = |(value, quota)| Arc::new(limit.for_value(value, quota, Some(quota)).unwrap());
    let quotas = QuotasByValue::new(0, 1, [("pro", 20), ("free", 5)].map(of).into()).unwrap();
    let limits = vec![LimitBinding { limit: Arc::new(limit), per: vec![0] }];
    let rule =
        Rule::new("all", RequestMatch::default(), vec![LimitRef { limit: 0, cost: Cost::ONE }]);
    Policy::new(dimensions.into(), limits, vec![rule], MatchMode::FirstMatch)
        .unwrap()
        .with_quotas(vec![quotas])
        .unwrap()
}

fn limiter_of(algorithm: Algorithm) -> (Limiter<Memory>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START));
    let limiter = Limiter::new(Revision::new(policy(algorithm), "one"), Memory::default());
    (limiter.with_clock(Arc::clone(&clock)), clock)
}

struct Fields<const N: usize>([(&'static str, &'static [u8]); N]);

impl<const N: usize> Headers for Fields<N> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.as_slice().value(name, index)
    }
}

async fn check(limiter: &Limiter<Memory>, plan: &'static str) -> Decision {
    let headers = Fields([("x-user", b"ann"), ("x-plan", plan.as_bytes())]);
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &headers,
    };
    limiter.check(&attributes).await
}

fn status(decision: &Decision) -> (bool, u64, u64, u64) {
    let LimitStatus { used, remaining, ref limit, .. } = decision.evaluation.statuses[0];
    (decision.is_admitted(), limit.capacity(), used, remaining)
}

#[tokio::test]
async fn a_change_of_plan_keeps_the_used_units() {
    for algorithm in algorithms() {
        let is_bucket = matches!(algorithm, Algorithm::TokenBucket(_));
        let (limiter, _) = limiter_of(algorithm);
        for used in 1..=7 {
            let expected = (true, 20, used, 20 - used);
            assert_eq!(status(&check(&limiter, "pro").await), expected, "{algorithm:?}");
        }
        // A bucket keeps its tokens, at most the burst of the new plan.
        let (admitted, capacity, _, remaining) = status(&check(&limiter, "free").await);
        assert_eq!((admitted, capacity), (is_bucket, 5), "{algorithm:?}");
        assert_eq!(remaining, if is_bucket { 4 } else { 0 }, "{algorithm:?}");
        let (admitted, capacity, _, remaining) = status(&check(&limiter, "none").await);
        assert_eq!((admitted, capacity), (is_bucket, 3), "{algorithm:?}");
        assert_eq!(remaining, if is_bucket { 2 } else { 0 }, "{algorithm:?}");
        if !is_bucket {
            let expected = (true, 20, 8, 12);
            assert_eq!(status(&check(&limiter, "pro").await), expected, "{algorithm:?}");
        }
    }
}

#[tokio::test]
async fn a_change_of_plan_never_opens_a_window_again() {
    let window = FixedWindow::new(3, MINUTE, Anchor::FirstRequest).unwrap();
    let (limiter, clock) = limiter_of(Algorithm::FixedWindow(window));
    let ends = check(&limiter, "free").await.evaluation.statuses[0].resets_at;
    for plan in ["pro", "free", "none", "pro", "free"] {
        clock.advance(Millis::from_secs(5));
        assert_eq!(check(&limiter, plan).await.evaluation.statuses[0].resets_at, ends, "{plan}");
    }
}

/// Compares a limit with quotas by plan with a model: one limit. An operator changes the quota of
/// this limit before each request. Both must make the same decisions.
#[tokio::test]
async fn drawn_plans_decide_as_changed_quotas_of_one_limit() {
    let mut drawn = 1_u64;
    let mut draw = |below: u64| {
        drawn =
            drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (drawn >> 33) % below
    };
    for algorithm in algorithms() {
        let (limiter, clock) = limiter_of(algorithm);
        let base = Limit::new("all", algorithm).unwrap().with_on_change(OnChange::Keep);
        let (changed, other) = limiter_of(algorithm);
        for _ in 0..300 {
            let (plan, quota) = [("pro", 20), ("free", 5), ("none", 3)][draw(3) as usize];
            let step = Millis::new(draw(9_000));
            clock.advance(step);
            other.advance(step);
            let mut whole = policy(algorithm);
            let limit = Arc::new(base.with_quota(quota, Some(quota)).unwrap());
            whole = Policy::new(
                whole.dimensions().to_vec(),
                vec![LimitBinding { limit, per: vec![0] }],
                whole.rules().to_vec(),
                MatchMode::FirstMatch,
            )
            .unwrap();
            changed.replace_policy(Revision::new(whole, "changed"));
            let (one, two) = (check(&limiter, plan).await, check(&changed, plan).await);
            assert_eq!(status(&one), status(&two), "{algorithm:?} {plan}");
            let reset = |decision: &Decision| decision.evaluation.statuses[0].resets_at;
            assert_eq!(reset(&one), reset(&two), "{algorithm:?} {plan}");
        }
    }
}

#[tokio::test]
async fn permits_are_shared_by_the_plans() {
    let algorithm = Algorithm::Concurrency(Concurrency::new(3, MINUTE).unwrap());
    let (limiter, _) = limiter_of(algorithm);
    let mut running = Vec::new();
    for _ in 0..6 {
        running.push(check(&limiter, "pro").await);
    }
    assert_eq!(status(running.last().unwrap()), (true, 20, 6, 14));
    assert!(!check(&limiter, "free").await.is_admitted());
    assert!(check(&limiter, "pro").await.is_admitted());
}

#[tokio::test]
async fn a_sealed_receipt_refunds_by_the_quota_of_its_charge() {
    let bucket = TokenBucket::new(3, MINUTE, 3).unwrap();
    let (limiter, _) = limiter_of(Algorithm::TokenBucket(bucket));
    for used in 1..=9 {
        let charged = check(&limiter, "pro").await;
        assert_eq!(status(&charged), (true, 20, used, 20 - used));
    }
    let charged = check(&limiter, "pro").await;
    let sealed = limiter.seal(charged.receipt.expect("an admitted charge has a receipt"), START);
    let refunded = limiter.redeem_at(START, &sealed).await.unwrap();
    assert_eq!((refunded.limits[0].units, refunded.limits[0].status.limit.capacity()), (1, 20));
    assert_eq!(status(&check(&limiter, "pro").await), (true, 20, 10, 10));
}
