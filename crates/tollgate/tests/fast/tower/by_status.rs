//! Limits that count responses by their status, and rules with their own refunds.

use std::sync::Arc;

use http::StatusCode;
use tollgate::model::StatusSet;
use tollgate::model::policy::{ChargeOn, ResponseSettings, Rule, RuleMode};
use tollgate::model::{Limit, Policy, RequestAttributes, Store};

use crate::tower::world::{World, field, github, policy, rule, window};

fn failures(quota: u64) -> Limit {
    window("failures", quota).with_counted([401, 403].into_iter().collect())
}

fn both(failed: u64) -> Policy {
    let all = rule("all", "/**", &[0, 1], RuleMode::Enforce);
    policy(vec![failures(failed), window("core", 1_000)], vec![all], github())
}

/// Returns the used units of every limit, in the policy's order.
async fn used<S: Store>(world: &World<S>) -> Vec<u64> {
    let peer = Some([192, 0, 2, 1].into());
    let attributes =
        RequestAttributes { method: "GET", path: "/", query: None, host: None, peer, headers: &() };
    let statuses = world.limiter.statuses(&attributes).await.unwrap().statuses;
    statuses.iter().map(|status| status.used).collect()
}

#[tokio::test]
async fn only_responses_with_a_counted_status_count_beside_another_limit() {
    let world = World::new(both(2));
    for _ in 0..5 {
        assert_eq!(world.get("/").await.status(), StatusCode::OK);
    }
    assert_eq!(used(&world).await, [0, 5]);
    assert_eq!(world.get("/401").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(world.get("/500").await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(used(&world).await, [1, 7]);
    let last = world.get("/401").await;
    assert_eq!(field(&last, "x-ratelimit-resource"), "failures");
    assert_eq!(field(&last, "x-ratelimit-remaining"), "0");
    // The quota of failures is used up for every request, whatever its response would be.
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(used(&world).await, [2, 8]);
}

#[tokio::test]
async fn a_response_shows_the_status_after_its_own_refund() {
    let counted = window("core", 9).with_counted(StatusSet::default().with(500, 599));
    let all = rule("all", "/**", &[0], RuleMode::Enforce);
    let world = World::new(policy(vec![counted], vec![all], github()));
    assert_eq!(field(&world.get("/").await, "x-ratelimit-remaining"), "9");
    assert_eq!(field(&world.get("/500").await, "x-ratelimit-remaining"), "8");
    assert_eq!(field(&world.get("/gone").await, "x-ratelimit-remaining"), "7");
}

#[tokio::test]
async fn fifty_failures_at_once_reach_the_service_at_most_as_often_as_the_quota_allows() {
    for charge in [ChargeOn::Arrival, ChargeOn::Completion] {
        let all = Rule { charge, ..rule("all", "/**", &[0, 1], RuleMode::Enforce) };
        let limits = vec![failures(5), window("core", 1_000)];
        let world = World::new(policy(limits, vec![all], github()));
        let requests: Vec<_> = (0..50).map(|_| tokio::spawn(world.get("/slow/401"))).collect();
        world.gate.add_permits(50);
        let mut statuses = Vec::new();
        for request in requests {
            statuses.push(request.await.unwrap().status());
        }
        let failed = statuses.iter().filter(|status| **status == StatusCode::UNAUTHORIZED);
        assert_eq!(failed.count(), 5, "{charge:?}");
        assert_eq!(used(&world).await, [5, 5], "{charge:?}");
    }
}

#[tokio::test]
async fn a_request_without_a_known_response_stays_counted() {
    let world = Arc::new(World::new(both(1)));
    let request = tokio::spawn(world.get("/slow"));
    tokio::task::yield_now().await;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    assert_eq!(used(&world).await, [1, 1]);
}

#[tokio::test]
async fn a_rule_refunds_by_its_own_statuses_instead_of_those_of_the_policy() {
    let with = |refund: &[u16]| {
        let own = Rule {
            refund: Some(Arc::new(refund.iter().copied().collect())),
            ..rule("own", "/**", &[0], RuleMode::Enforce)
        };
        let other = rule("other", "/**", &[1], RuleMode::Enforce);
        let answers = ResponseSettings { refund_statuses: vec![304], ..github() };
        let limits = vec![window("own", 99), window("other", 99)];
        World::new(policy(limits, vec![own, other], answers))
    };
    let world = with(&[500]);
    world.get("/500").await;
    assert_eq!(used(&world).await, [0, 1]);
    world.get("/304").await;
    assert_eq!(used(&world).await, [1, 1]);
    let never = with(&[]);
    never.get("/304").await;
    assert_eq!(used(&never).await, [1, 0]);
}

#[tokio::test]
async fn two_rules_of_one_limit_are_refunded_each_for_its_own_part() {
    let own = Rule {
        refund: Some(Arc::new([500].into_iter().collect())),
        ..rule("own", "/**", &[0], RuleMode::Enforce)
    };
    let other = rule("other", "/**", &[0], RuleMode::Enforce);
    let shadow = Rule { mode: RuleMode::Shadow, ..own.clone() };
    let rules = vec![own, other, Rule { name: "shadow".into(), ..shadow }];
    let world = World::new(policy(vec![window("core", 99)], rules, github()));
    let response = world.get("/500").await;
    // Two of three units are refunded, and the shadow rule's unit is not part of the evaluation.
    assert_eq!(used(&world).await, [1]);
    assert_eq!(field(&response, "x-ratelimit-used"), "1");
    world.get("/").await;
    assert_eq!(used(&world).await, [4]);
}

#[tokio::test]
async fn a_rule_that_charges_on_completion_follows_its_own_refunds() {
    let own = Rule {
        refund: Some(Arc::new([500].into_iter().collect())),
        charge: ChargeOn::Completion,
        ..rule("own", "/**", &[0], RuleMode::Enforce)
    };
    let world = World::new(policy(vec![window("core", 9)], vec![own], github()));
    assert_eq!(field(&world.get("/500").await, "x-ratelimit-remaining"), "9");
    assert_eq!(field(&world.get("/").await, "x-ratelimit-remaining"), "8");
    assert_eq!(used(&world).await, [1]);
}

#[tokio::test]
async fn a_request_that_a_look_refuses_is_no_failure() {
    let own =
        Rule { charge: ChargeOn::Completion, ..rule("all", "/**", &[0, 1], RuleMode::Enforce) };
    let world = World::new(policy(vec![failures(5), window("core", 1)], vec![own], github()));
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
    for _ in 0..9 {
        let refused = world.get("/401").await;
        assert_eq!(field(&refused, "x-ratelimit-resource"), "core");
    }
    assert_eq!(used(&world).await, [0, 1]);
}
