//! Requests that a server without the layer checks and finishes.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use tollgate::model::policy::{
    ChargeOn, LimitRef, Meter, MeteredLimit, ResponseSettings, Rule, RuleMode,
};
use tollgate::model::{Cost, Limit, Millis, Policy};
use tollgate::{Limiter, ManualClock, RequestLimiter};

use super::world::{START, concurrent, field, github, policy, rule, window};

fn parts() -> Parts {
    Request::new(()).into_parts().0
}

/// Returns a policy with one limit. Responses with status 304 are free.
fn of(limit: Limit, charge: ChargeOn) -> Policy {
    let rule = Rule { charge, ..rule("all", "/**", &[0], RuleMode::Enforce) };
    let answers = ResponseSettings { refund_statuses: vec![304], ..github() };
    policy(vec![limit], vec![rule], answers)
}

fn limiter(policy: Policy) -> (RequestLimiter, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START));
    let limiter = Limiter::new(policy, tollgate::store::Memory::default());
    (limiter.with_clock(Arc::clone(&clock)).into(), clock)
}

/// Returns the units that are left after the request that this function checks.
async fn remaining(limiter: &RequestLimiter) -> Option<u64> {
    let mut decision = limiter.check(&parts(), None).await;
    let remaining = decision.remaining();
    decision.finish(StatusCode::NOT_MODIFIED);
    remaining
}

/// The bug: a permit stayed held for its whole lifetime, because the decision could not release the
/// permit.
#[tokio::test]
async fn a_permit_was_held_after_the_request_had_ended() {
    for finish in [true, false] {
        let (limiter, _clock) = limiter(of(concurrent(1), ChargeOn::Arrival));
        for _ in 0..3 {
            let mut decision = limiter.check(&parts(), None).await;
            assert!(decision.is_admitted(), "finish: {finish}");
            if finish {
                decision.finish(StatusCode::OK);
            }
            assert!(!limiter.check(&parts(), None).await.is_admitted(), "finish: {finish}");
        }
    }
}

/// The bug: no request was counted by a rule that charges on completion, so its limits admitted
/// everything.
#[tokio::test]
async fn a_limit_that_is_charged_on_completion_was_never_charged() {
    for finish in [true, false] {
        let (limiter, _clock) = limiter(of(window("core", 2), ChargeOn::Completion));
        for expected in [true, true, false] {
            let mut decision = limiter.check(&parts(), None).await;
            assert_eq!(decision.is_admitted(), expected, "finish: {finish}");
            if finish {
                decision.finish(StatusCode::OK);
            }
        }
    }
}

/// The bug: a server without the layer could not return the units of a free response.
#[tokio::test]
async fn a_free_response_stayed_charged() {
    for charge in [ChargeOn::Arrival, ChargeOn::Completion] {
        let (limiter, _clock) = limiter(of(window("core", 9), charge));
        let before = remaining(&limiter).await;
        for _ in 0..20 {
            let mut decision = limiter.check(&parts(), None).await;
            assert!(decision.is_admitted());
            decision.finish(StatusCode::NOT_MODIFIED);
        }
        assert_eq!(remaining(&limiter).await, before, "{charge:?}");
    }
}

#[tokio::test]
async fn the_header_fields_of_a_finished_request_include_its_charge() {
    for (status, expected) in [(StatusCode::OK, "8"), (StatusCode::NOT_MODIFIED, "9")] {
        for charge in [ChargeOn::Arrival, ChargeOn::Completion] {
            let (limiter, _clock) = limiter(of(window("core", 9), charge));
            let mut decision = limiter.check(&parts(), None).await;
            // Only the first call counts.
            decision.finish(status);
            decision.finish(StatusCode::NOT_MODIFIED);
            decision.finish(StatusCode::OK);
            let mut response = http::Response::new(());
            decision.write_headers(response.headers_mut());
            assert_eq!(field(&response, "x-ratelimit-remaining"), expected, "{charge:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_request_is_not_changed_by_its_response() {
    let (limiter, _clock) = limiter(of(window("core", 1), ChargeOn::Arrival));
    assert!(limiter.check(&parts(), None).await.is_admitted());
    let mut refused = limiter.check(&parts(), None).await;
    let fields = |refused: &tollgate::RequestDecision| {
        let mut fields = HeaderMap::new();
        refused.write_headers(&mut fields);
        fields
    };
    let before = fields(&refused);
    refused.finish(StatusCode::NOT_MODIFIED);
    assert_eq!(fields(&refused), before);
    assert!(!limiter.check(&parts(), None).await.is_admitted());
}

/// The bug: the estimate of a cost in time stayed charged, whatever the request took.
#[tokio::test]
async fn a_cost_in_time_was_never_settled() {
    let each = Millis::from_secs(1);
    let mut by_time = rule("metered", "/**", &[], RuleMode::Enforce);
    by_time.limits.push(LimitRef { limit: 0, cost: Cost::new(40).unwrap() });
    let meter = |meter| MeteredLimit { limit: 0, meter: Arc::new(meter), reserve: None };
    let mut by_size = by_time.clone();
    by_time.metered.push(meter(Meter::Time { each }));
    by_size.metered.push(meter(Meter::Size { bytes: 1.try_into().unwrap() }));
    // The decision does not see the body, so the reserved units of a cost in bytes are charged.
    for (rule, status, used) in [
        (&by_time, StatusCode::OK, 3),
        (&by_time, StatusCode::NOT_MODIFIED, 0),
        (&by_size, StatusCode::OK, 40),
        (&by_size, StatusCode::NOT_MODIFIED, 0),
    ] {
        let answers = ResponseSettings { refund_statuses: vec![304], ..github() };
        let (limiter, clock) =
            limiter(policy(vec![window("units", 100)], vec![rule.clone()], answers));
        let mut decision = limiter.check(&parts(), None).await;
        assert_eq!(decision.remaining(), Some(60));
        clock.advance_by(Duration::from_millis(2_500));
        decision.finish(status);
        drop(decision);
        let probe = limiter.check(&parts(), None).await;
        assert_eq!(probe.remaining(), Some(60 - used), "{rule:?} {status}");
    }
}
