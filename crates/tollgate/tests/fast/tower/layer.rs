//! Tests of the layer: charges, refusals, header fields and refunds.

use std::sync::Arc;

use http::StatusCode;
use tollgate::model::Millis;
use tollgate::model::policy::answers::RefundPolicy;
use tollgate::model::policy::{ResponseSettings, RuleMode};

use crate::tower::world::{World, concurrent, field, github, policy, rule, text, window};

#[tokio::test]
async fn admits_up_to_the_quota_then_refuses_with_problem_details_until_the_reset() {
    let world = World::new(policy(
        vec![window("core", 2)],
        vec![rule("all", "/**", &[0], RuleMode::Enforce)],
        github(),
    ));
    for remaining in ["1", "0"] {
        let response = world.get("/").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(field(&response, "x-ratelimit-remaining"), remaining);
        assert_eq!(field(&response, "x-ratelimit-reset"), "1700000060");
        world.clock.advance(Millis::new(1_500));
    }
    let response = world.get("/").await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&response, "content-type"), "application/json; charset=utf-8");
    // As in GitHub's API, the reset reports the wait.
    assert!(field(&response, "retry-after").is_empty());
    assert_eq!(field(&response, "x-ratelimit-reset"), "1700000060");
    assert_eq!(field(&response, "x-ratelimit-remaining"), "0");
    assert_eq!(
        text(response).await,
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"detail":"Refused by limit core (2 per 1m); try again in 57 s.","violated-policies":["core"],"message":"API rate limit exceeded."}"#
    );
    world.clock.advance(Millis::from_secs(57));
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_answer_whose_status_is_free_costs_nothing() {
    let refund = ResponseSettings { refund_statuses: vec![304], ..github() };
    let rules = || vec![rule("all", "/**", &[0], RuleMode::Enforce)];
    let world = World::new(policy(vec![window("core", 2)], rules(), refund));
    for _ in 0..5 {
        let response = world.get("/304").await;
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(field(&response, "x-ratelimit-remaining"), "2");
        assert_eq!(field(&response, "x-ratelimit-used"), "0");
    }
    assert_eq!(field(&world.get("/").await, "x-ratelimit-remaining"), "1");

    let world = World::new(policy(vec![window("core", 2)], rules(), github()));
    assert_eq!(field(&world.get("/304").await, "x-ratelimit-remaining"), "1");
}

#[tokio::test]
async fn an_upstream_that_failed_is_refunded_where_the_policy_says_so() {
    for (refund, remaining) in [(RefundPolicy::Refund, "2"), (RefundPolicy::Keep, "1")] {
        let answers = ResponseSettings { refund_upstream_failure: refund, ..github() };
        let rules = vec![rule("all", "/**", &[0], RuleMode::Enforce)];
        let world = World::new(policy(vec![window("core", 2)], rules, answers));
        assert_eq!(field(&world.get("/gone").await, "x-ratelimit-remaining"), remaining);
        // A 500 that the upstream sent itself is an ordinary response.
        world.clock.advance(Millis::from_secs(60));
        assert_eq!(field(&world.get("/500").await, "x-ratelimit-remaining"), "1");
    }
}

#[tokio::test]
async fn a_refused_charge_leaves_every_limit_as_it_was() {
    let rules = vec![
        rule("narrow", "/narrow", &[0], RuleMode::Enforce),
        rule("all", "/**", &[1], RuleMode::Enforce),
    ];
    let world = World::new(policy(vec![window("narrow", 1), window("wide", 9)], rules, github()));
    assert_eq!(world.get("/narrow").await.status(), StatusCode::OK);
    for _ in 0..3 {
        assert_eq!(world.get("/narrow").await.status(), StatusCode::TOO_MANY_REQUESTS);
    }
    assert_eq!(field(&world.get("/other").await, "x-ratelimit-used"), "2");
}

#[tokio::test]
async fn a_rule_in_shadow_stops_nobody() {
    let rules = vec![
        rule("trial", "/**", &[0], RuleMode::Shadow),
        rule("all", "/**", &[1], RuleMode::Enforce),
    ];
    let world = World::new(policy(vec![window("trial", 1), window("wide", 9)], rules, github()));
    for used in ["1", "2", "3"] {
        let response = world.get("/").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(field(&response, "x-ratelimit-used"), used);
    }
}

#[tokio::test]
async fn every_status_can_be_seen_and_seeing_costs_nothing() {
    let answers = ResponseSettings { status_path: Some("/rate_limit".into()), ..github() };
    let rules = vec![
        rule("search", "/search", &[0, 1, 2], RuleMode::Enforce),
        rule("all", "/**", &[0], RuleMode::Enforce),
    ];
    let limits = vec![window("core", 9), window("search", 3), concurrent(5)];
    let world = World::new(policy(limits, rules, answers));
    drop(world.get("/search").await);
    for _ in 0..3 {
        let response = world.get("/rate_limit").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            text(response).await,
            concat!(
                r#"{"resources":{"core":{"limit":9,"used":2,"remaining":7,"reset":1700000060,"resource":"core"},"#,
                r#""search":{"limit":3,"used":1,"remaining":2,"reset":1700000060,"resource":"search"},"#,
                r#""concurrent":{"limit":5,"used":0,"remaining":5,"reset":1700000000,"resource":"concurrent"}},"#,
                r#""rate":{"limit":9,"used":2,"remaining":7,"reset":1700000060,"resource":"core"}}"#
            )
        );
    }
}

#[tokio::test]
async fn two_hundred_parallel_requests_at_a_limit_of_a_hundred_admit_a_hundred() {
    let rules = vec![rule("all", "/**", &[0], RuleMode::Enforce)];
    let world = Arc::new(World::new(policy(vec![window("core", 100)], rules, github())));
    let requests = (0..200).map(|_| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.get("/").await.status() })
    });
    let requests: Vec<_> = requests.collect();
    let mut admitted = 0;
    for request in requests {
        admitted += u32::from(request.await.unwrap() == StatusCode::OK);
    }
    assert_eq!(admitted, 100);
}
