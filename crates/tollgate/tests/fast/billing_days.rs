//! Tests of windows that depend on the billing day of a subject. A subject that changes its billing
//! day keeps its used units and the end of its open window.

use std::sync::Arc;

use tollgate::limiter::Decision;
use tollgate::model::algo::{FixedWindow, Schedule};
use tollgate::model::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, QuotasByValue, RequestMatch, Rule, SubjectSource,
    WindowsByValue,
};
use tollgate::model::{
    Algorithm, Cost, Headers, Limit, LimitStatus, Millis, OnChange, Policy, RequestAttributes,
    Timestamp,
};
use tollgate::store::Memory;
use tollgate::{Limiter, ManualClock, Revision};
use tollgate_conformance::schedule::{EARLIER_UNEVEN_SECONDS, UNEVEN_SECONDS};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn limit() -> Limit {
    let window = FixedWindow::scheduled(3, UNEVEN_SECONDS).unwrap();
    let limit = Limit::new("all", Algorithm::FixedWindow(window)).unwrap();
    limit.with_on_change(OnChange::Keep)
}

/// Returns a policy with a limit of 3 units, or 9 units for the plan `pro`. For subjects with the
/// billing day 15, the windows begin 11 s earlier.
fn policy(limit: Limit) -> Policy {
    let names = [("user", "x-user"), ("plan", "x-plan"), ("renewal", "x-renewal")];
    let dimensions = names.map(|(name, header)| Dimension {
        name: name.into(),
        source: SubjectSource::Header { header: header.into() },
    });
    let pro = Arc::new(limit.for_value("pro", 9, None).unwrap());
    let quotas = QuotasByValue::new(0, 1, vec![pro]).unwrap();
    let days: [(Arc<str>, Schedule); 2] =
        [("1".into(), UNEVEN_SECONDS), ("15".into(), EARLIER_UNEVEN_SECONDS)];
    let windows = WindowsByValue::new(0, 2, days.into()).unwrap();
    let limits = vec![LimitBinding { limit: Arc::new(limit), per: vec![0] }];
    let rule =
        Rule::new("all", RequestMatch::default(), vec![LimitRef { limit: 0, cost: Cost::ONE }]);
    Policy::new(dimensions.into(), limits, vec![rule], MatchMode::FirstMatch)
        .unwrap()
        .with_quotas(vec![quotas])
        .unwrap()
        .with_windows(vec![windows])
        .unwrap()
}

fn limiter_of(limit: Limit) -> (Limiter<Memory>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START));
    let limiter = Limiter::new(Revision::new(policy(limit), "one"), Memory::default());
    (limiter.with_clock(Arc::clone(&clock)), clock)
}

struct Fields<const N: usize>([(&'static str, &'static [u8]); N]);

impl<const N: usize> Headers for Fields<N> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.as_slice().value(name, index)
    }
}

async fn check(limiter: &Limiter<Memory>, plan: &'static str, day: &'static str) -> Decision {
    let (plan, day) = (plan.as_bytes(), day.as_bytes());
    let headers = Fields([("x-user", b"ann"), ("x-plan", plan), ("x-renewal", day)]);
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

fn status(decision: &Decision) -> (bool, u64, u64, Timestamp) {
    let LimitStatus { used, resets_at, ref limit, .. } = decision.evaluation.statuses[0];
    (decision.is_admitted(), limit.capacity(), used, resets_at)
}

fn end(schedule: Schedule, at: Timestamp) -> Timestamp {
    schedule.window_at(at).end
}

#[tokio::test]
async fn the_value_selects_the_windows_and_the_plan_the_quota() {
    for (plan, day, quota, schedule) in [
        ("pro", "15", 9, EARLIER_UNEVEN_SECONDS),
        ("free", "15", 3, EARLIER_UNEVEN_SECONDS),
        ("pro", "1", 9, UNEVEN_SECONDS),
        ("free", "32", 3, UNEVEN_SECONDS),
        ("pro", "015", 9, UNEVEN_SECONDS),
        ("free", "", 3, UNEVEN_SECONDS),
    ] {
        let (limiter, _) = limiter_of(limit());
        let decision = check(&limiter, plan, day).await;
        assert_eq!(status(&decision), (true, quota, 1, end(schedule, START)), "{plan} {day:?}");
    }
}

#[tokio::test]
async fn a_change_of_the_day_keeps_the_used_units_and_the_end_of_the_open_window() {
    let (limiter, clock) = limiter_of(limit());
    let first_end = end(UNEVEN_SECONDS, START);
    assert_eq!(status(&check(&limiter, "free", "1").await), (true, 3, 1, first_end));
    for (day, used) in [("15", 2), ("1", 3)] {
        assert_eq!(status(&check(&limiter, "free", day).await), (true, 3, used, first_end));
    }
    assert_eq!(status(&check(&limiter, "free", "15").await), (false, 3, 3, first_end));
    // The next window ends on the new day.
    clock.advance(first_end.since(START));
    let next_end = end(EARLIER_UNEVEN_SECONDS, first_end);
    assert_eq!(status(&check(&limiter, "free", "15").await), (true, 3, 1, next_end));
}

/// Compares the limit with a model: one limit without billing days. An operator changes the windows
/// of this limit before each request. Both must make the same decisions.
#[tokio::test]
async fn drawn_days_decide_as_changed_windows_of_one_limit() {
    let mut drawn = 1_u64;
    let mut draw = |below: u64| {
        drawn =
            drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (drawn >> 33) % below
    };
    let (limiter, clock) = limiter_of(limit());
    let (changed, other) = limiter_of(limit());
    let days = [("1", UNEVEN_SECONDS), ("15", EARLIER_UNEVEN_SECONDS), ("none", UNEVEN_SECONDS)];
    for _ in 0..500 {
        let (day, schedule) = days[draw(3) as usize];
        let plan = ["pro", "free"][draw(2) as usize];
        let step = Millis::new(draw(9_000));
        clock.advance(step);
        other.advance(step);
        let whole = policy(limit().with_schedule(schedule).unwrap());
        changed.replace_policy(Revision::new(whole, "changed"));
        let (one, two) = (check(&limiter, plan, day).await, check(&changed, plan, "").await);
        assert_eq!(status(&one), status(&two), "{plan} {day}");
    }
}

#[tokio::test]
async fn a_sealed_receipt_refunds_to_the_window_of_its_charge() {
    let (limiter, _) = limiter_of(limit());
    let charged = check(&limiter, "pro", "15").await;
    let sealed = limiter.seal(charged.receipt.expect("an admitted charge has a receipt"), START);
    let refunded = limiter.redeem_at(START, &sealed).await.unwrap();
    assert_eq!(refunded.limits[0].units, 1);
    let end = end(EARLIER_UNEVEN_SECONDS, START);
    assert_eq!(status(&check(&limiter, "pro", "15").await), (true, 9, 1, end));
}

#[test]
fn a_limit_without_fixed_windows_has_no_schedule() {
    use tollgate::model::algo::TokenBucket;
    let bucket = TokenBucket::new(3, Millis::from_secs(60), 3).unwrap();
    let bucket = Limit::new("all", Algorithm::TokenBucket(bucket)).unwrap();
    assert!(bucket.with_schedule(UNEVEN_SECONDS).is_none());
}
