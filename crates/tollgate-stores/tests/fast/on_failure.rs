//! The behavior of rules while the store does not answer.

use std::num::NonZeroU32;

use http::{Response, StatusCode};
use tollgate::model::StoreError;
use tollgate::model::policy::{OnFailure, Policy, Rule, RuleMode};
use tollgate::store::Memory;
use tollgate_stores::{Fallback, LocalShare};

use crate::faulty::{Faulty, Trouble};
use crate::world::{World, field, github, policy, rule, text, window};

/// Returns a policy with a rule for every value of `on_failure`. All rules use one limit of 4
/// units, of which each of the four nodes has a share of 1 unit.
fn strict_and_lenient() -> Policy {
    let named = |path: &str, on_failure| Rule {
        on_failure,
        ..rule(path.trim_matches(['/', '*']), path, &[0], RuleMode::Enforce)
    };
    let rules = vec![
        named("/allow/**", OnFailure::Allow),
        named("/*/local", OnFailure::Local),
        named("/*/deny", OnFailure::Deny),
        named("/local", OnFailure::Local),
    ];
    policy(vec![window("core", 4)], rules, github())
}

type Troubled = Fallback<Faulty, LocalShare<Memory>>;

fn in_trouble() -> World<Troubled> {
    let nodes = NonZeroU32::new(4).unwrap();
    let world = World::over(
        strict_and_lenient(),
        Fallback::new(Faulty::new(), LocalShare::new(Memory::default(), nodes)),
    );
    world.limiter.store().store().usually(Trouble::Lost(StoreError::TimedOut));
    world
}

fn is_told_nothing<B>(response: &Response<B>) -> bool {
    field(response, "x-ratelimit-limit").is_empty() && field(response, "retry-after").is_empty()
}

#[tokio::test]
async fn a_rule_that_allows_lets_everyone_pass_and_reports_nothing() {
    let world = in_trouble();
    for _ in 0..9 {
        let response = world.get("/allow").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert!(is_told_nothing(&response));
    }
    // The fallback refunded the charges that it had made.
    assert_eq!(field(&world.get("/local").await, "x-ratelimit-remaining"), "0");
}

#[tokio::test]
async fn a_rule_that_denies_answers_503_and_leaves_the_share_alone() {
    let world = in_trouble();
    for _ in 0..9 {
        let response = world.get("/any/deny").await;
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(field(&response, "content-type"), "application/problem+json");
        assert!(is_told_nothing(&response));
        assert!(text(response).await.contains("#temporary-reduced-capacity"));
    }
    assert_eq!(world.get("/local").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_rule_that_decides_locally_holds_to_this_node_s_share() {
    let world = in_trouble();
    let first = world.get("/local").await;
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!(field(&first, "x-ratelimit-used"), "4");
    let second = world.get("/local").await;
    assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(field(&second, "x-ratelimit-remaining"), "0");
    assert_eq!(field(&second, "x-ratelimit-reset"), "1700000060");
}

#[tokio::test]
async fn of_several_rules_the_strictest_has_the_word() {
    let world = in_trouble();
    assert_eq!(world.get("/allow/deny").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    // Two rules on one limit cost two units, and a share has only one unit.
    assert_eq!(world.get("/allow/local").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(world.get("/allow").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn without_a_stand_in_only_a_rule_that_denies_refuses() {
    let store = Faulty::new();
    store.usually(Trouble::Lost(StoreError::Unavailable));
    let world = World::over(strict_and_lenient(), store);
    for (path, status) in [
        ("/allow", StatusCode::OK),
        ("/local", StatusCode::OK),
        ("/any/deny", StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let response = world.get(path).await;
        assert_eq!(response.status(), status);
        assert!(is_told_nothing(&response), "{path}");
    }
}

#[tokio::test]
async fn as_soon_as_the_store_answers_it_decides_again() {
    let world = in_trouble();
    assert_eq!(world.get("/any/deny").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    world.limiter.store().store().usually(Trouble::None);
    let response = world.get("/any/deny").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(field(&response, "x-ratelimit-used"), "1");
}
