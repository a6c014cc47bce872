//! Tests of the permits of a request in flight, and of their expiry.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate::model::policy::{Policy, ResponseSettings, RuleMode};
use tollgate::model::{Millis, RequestAttributes, Store, StoreError};

use crate::faulty::{Faulty, Trouble};
use crate::tower::world::{PEER, World, concurrent, github, policy, rule, text, window};

/// Returns a policy with one concurrent request and a permit time of 30 s.
fn one_at_a_time() -> Policy {
    policy(vec![concurrent(1)], vec![rule("all", "/**", &[0], RuleMode::Enforce)], github())
}

/// Advances the limiter's clock and the runtime's clock by `seconds`.
async fn pass<S: Store>(world: &World<S>, seconds: u64) {
    for _ in 0..seconds {
        world.clock.advance(Millis::from_secs(1));
        tokio::time::advance(Duration::from_secs(1)).await;
        let_others_run().await;
    }
}

async fn let_others_run() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

async fn start<S: Store + 'static>(world: &World<S>) -> JoinHandle<StatusCode> {
    let request = world.get("/slow");
    let request = tokio::spawn(async move { request.await.status() });
    let_others_run().await;
    request
}

#[tokio::test]
async fn a_lease_lasts_until_the_body_ends_or_is_dropped() {
    let rules = vec![rule("all", "/**", &[0], RuleMode::Enforce)];
    let world = World::new(policy(vec![concurrent(1)], rules, github()));
    let first = world.get("/").await;
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);

    assert_eq!(text(first).await, "served");
    let second = world.get("/").await;
    assert_eq!(second.status(), StatusCode::OK);
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);

    drop(second);
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_refund_does_not_end_a_lease_early() {
    let refund = ResponseSettings { refund_statuses: vec![304], ..github() };
    let rules = vec![rule("all", "/**", &[0, 1], RuleMode::Enforce)];
    let world = World::new(policy(vec![window("core", 9), concurrent(1)], rules, refund));
    let running = world.get("/304").await;
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(running);
    let response = world.get("/").await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_disconnects_during_the_charge_of_a_shadow_rule_holds_no_permit() {
    let rules = vec![
        rule("all", "/**", &[0], RuleMode::Enforce),
        rule("trial", "/**", &[1], RuleMode::Shadow),
    ];
    let policy = policy(vec![concurrent(1), window("core", 9)], rules, github());
    let world = World::over(policy, Faulty::new());
    let never = Arc::new(Semaphore::new(0));
    world.limiter.store().next([Trouble::None, Trouble::Held(never)]);
    timeout(Duration::ZERO, world.get("/")).await.map(drop).expect_err("the second call is held");
    assert_eq!(world.limiter.store().calls(), 3, "two charges and a release");
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_refused_request_holds_no_permit_of_a_shadow_rule() {
    let rules = vec![
        rule("all", "/**", &[0], RuleMode::Enforce),
        rule("trial", "/**", &[1], RuleMode::Shadow),
    ];
    let world = World::new(policy(vec![window("core", 1), concurrent(1)], rules, github()));
    drop(world.get("/").await);
    for _ in 0..3 {
        assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    }
    let (now, policy, peer) = (world.limiter.now(), world.limiter.policy(), Some(PEER));
    let request =
        RequestAttributes { method: "GET", path: "/", query: None, host: None, peer, headers: &() };
    let planned = world.limiter.plan_at(now, &policy, &request).shadowed;
    let (evaluation, _) = world.limiter.peek_planned(now, &planned).await.unwrap();
    assert_eq!(evaluation.statuses[0].used, 0, "no request is in flight");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_its_request_runs_and_no_longer() {
    let world = World::over(one_at_a_time(), Faulty::new());
    let running = start(&world).await;
    pass(&world, 100).await;
    assert_eq!(world.limiter.store().calls(), 1 + 10, "renewed each 10 s");
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    world.gate.add_permits(1);
    assert_eq!(running.await.unwrap(), StatusCode::OK);
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
    let calls = world.limiter.store().calls();
    pass(&world, 100).await;
    assert_eq!(world.limiter.store().calls(), calls);
}

#[tokio::test(start_paused = true)]
async fn a_lease_outlives_a_renewal_that_fails() {
    let world = World::over(one_at_a_time(), Faulty::new());
    let running = start(&world).await;
    world.limiter.store().next([Trouble::Lost(StoreError::TimedOut)]);
    pass(&world, 45).await;
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    // A permit that is not renewed expires, and later renewals do not restore it.
    world.limiter.store().usually(Trouble::Lost(StoreError::TimedOut));
    pass(&world, 31).await;
    world.limiter.store().usually(Trouble::None);
    pass(&world, 30).await;
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn an_upgraded_connection_holds_its_lease_until_it_ends() {
    let world = World::new(one_at_a_time());
    let response = world.get("/upgrade").await;
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    drop(response);
    pass(&world, 100).await;
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    world.tunnels.lock().clear();
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
}
