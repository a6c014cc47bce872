//! Rules that peek on arrival and charge when the response is known.

use std::num::NonZeroU64;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate::Limiter;
use tollgate::model::policy::answers::RefundPolicy;
use tollgate::model::policy::{
    ChargeOn, Meter, MeteredLimit, OnFailure, ResponseSettings, Rule, RuleMode,
};
use tollgate::model::{Limit, Millis, Policy, Refusals, RequestAttributes, Store, StoreError};
use tollgate::observe::{CompletionCounts, Completions};

use crate::faulty::{Faulty, Trouble};
use crate::tower::world::{World, concurrent, field, github, policy, rule, window};

fn on_completion(limits: Vec<Limit>) -> Policy {
    let indices: Vec<_> = (0..limits.len()).collect();
    let all = rule("all", "/**", &indices, RuleMode::Enforce);
    let answers = ResponseSettings { refund_statuses: vec![304], ..github() };
    policy(limits, vec![Rule { charge: ChargeOn::Completion, ..all }], answers)
}

/// Returns a world with counters of completions and calls.
fn counted(limits: Vec<Limit>) -> (World<Faulty>, Arc<Completions>) {
    let completions = Arc::new(Completions::default());
    let limiter = Limiter::new(on_completion(limits), Faulty::new());
    (World::around(limiter.with_observer(Arc::clone(&completions))), completions)
}

/// Starts a request, and returns when the request was processed on arrival. The response is not
/// sent yet.
async fn start<S: Store + 'static>(world: &World<S>) -> JoinHandle<(StatusCode, String)> {
    let request = world.get("/slow");
    let request = tokio::spawn(async move {
        let response = request.await;
        (response.status(), field(&response, "x-ratelimit-remaining").to_owned())
    });
    // One turn of this runtime's only thread processes it up to the gate.
    tokio::task::yield_now().await;
    request
}

/// Returns the usage in the response to a free request, which contains the status of the limits.
async fn used<S: Store + 'static>(world: &World<S>) -> String {
    field(&world.get("/304").await, "x-ratelimit-used").to_owned()
}

/// Returns the used units of every limit, in the policy's order.
async fn used_of_each<S: Store>(world: &World<S>) -> Vec<u64> {
    let peer = Some([192, 0, 2, 1].into());
    let attributes =
        RequestAttributes { method: "GET", path: "/", query: None, host: None, peer, headers: &() };
    let statuses = world.limiter.statuses(&attributes).await.unwrap().statuses;
    statuses.iter().map(|status| status.used).collect()
}

#[tokio::test]
async fn a_request_is_looked_at_on_arrival_and_charged_with_its_answer() {
    let (world, completions) = counted(vec![window("core", 9)]);
    let running = start(&world).await;
    assert_eq!(world.limiter.store().calls(), 1);
    assert_eq!(used(&world).await, "0");
    world.gate.add_permits(1);
    assert_eq!(running.await.unwrap(), (StatusCode::OK, "8".into()));
    assert_eq!(used(&world).await, "1");
    assert_eq!(completions.counts(), CompletionCounts { charged: 1, ..Default::default() });
}

#[tokio::test]
async fn the_reset_that_is_reported_is_that_of_the_charge() {
    let (world, _) = counted(vec![window("core", 9)]);
    let request = world.get("/slow");
    let request =
        tokio::spawn(async move { field(&request.await, "x-ratelimit-reset").to_owned() });
    tokio::task::yield_now().await;
    world.clock.advance(Millis::from_secs(5));
    world.gate.add_permits(1);
    assert_eq!(request.await.unwrap(), "1700000065");
    world.clock.advance(Millis::from_secs(5));
    assert_eq!(field(&world.get("/").await, "x-ratelimit-reset"), "1700000065");
}

#[tokio::test]
async fn a_refusal_comes_of_one_read_and_charges_nothing() {
    let (world, _) = counted(vec![window("narrow", 1), window("wide", 9)]);
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
    let calls = world.limiter.store().calls();
    for _ in 0..3 {
        let response = world.get("/").await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(field(&response, "x-ratelimit-resource"), "narrow");
        assert_eq!(field(&response, "x-ratelimit-remaining"), "0");
        assert_eq!(field(&response, "x-ratelimit-reset"), "1700000060");
    }
    assert_eq!(world.limiter.store().calls(), calls + 3);
    world.clock.advance(Millis::from_secs(60));
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_free_answer_is_never_charged_and_reports_the_status_as_it_is() {
    let (world, completions) = counted(vec![window("core", 2)]);
    assert_eq!(field(&world.get("/").await, "x-ratelimit-remaining"), "1");
    let calls = world.limiter.store().calls();
    for _ in 0..3 {
        let response = world.get("/304").await;
        assert_eq!(field(&response, "x-ratelimit-remaining"), "1");
        assert_eq!(field(&response, "x-ratelimit-reset"), "1700000060");
    }
    assert_eq!(world.limiter.store().calls(), calls + 3, "one read each");
    assert_eq!(completions.counts().charged, 1);
    assert_eq!(field(&world.get("/").await, "x-ratelimit-remaining"), "0");
}

#[tokio::test]
async fn an_upstream_that_failed_is_free_where_the_policy_says_so() {
    for (refund, used_after) in [(RefundPolicy::Refund, "0"), (RefundPolicy::Keep, "1")] {
        let given = on_completion(vec![window("core", 9)]);
        let answers =
            ResponseSettings { refund_upstream_failure: refund, ..given.answers().clone() };
        let world = World::new(given.with_answers(answers));
        assert_eq!(field(&world.get("/gone").await, "x-ratelimit-used"), used_after);
        assert_eq!(used(&world).await, used_after);
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_is_charged() {
    let (world, completions) = counted(vec![window("core", 9)]);
    let running = start(&world).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert_eq!(completions.counts().charged, 1);
    assert_eq!(used(&world).await, "1");
}

#[tokio::test]
async fn requests_that_saw_the_last_unit_together_all_pass_and_fill_the_limit_only() {
    let (world, completions) = counted(vec![window("narrow", 2), window("wide", 9)]);
    let running =
        [start(&world).await, start(&world).await, start(&world).await, start(&world).await];
    world.gate.add_permits(4);
    for request in running {
        // Each response shows the state that the request saw, minus its own cost.
        assert_eq!(request.await.unwrap(), (StatusCode::OK, "1".into()));
    }
    assert_eq!(completions.counts(), CompletionCounts { charged: 2, overrun: 2, lost: 0 });
    let refused = world.get("/").await;
    assert_eq!(field(&refused, "x-ratelimit-resource"), "narrow");
    assert_eq!(field(&refused, "x-ratelimit-used"), "2");
    // The wide limit had room, and was charged for all four.
    assert_eq!(used_of_each(&world).await, [2, 4]);
}

#[tokio::test]
async fn leases_are_held_from_the_arrival_and_end_where_a_look_refuses() {
    let (world, _) = counted(vec![window("core", 1), concurrent(2)]);
    let running = [start(&world).await, start(&world).await];
    let refused = world.get("/").await;
    assert_eq!(field(&refused, "x-ratelimit-resource"), "concurrent");
    world.gate.add_permits(2);
    for request in running {
        assert_eq!(request.await.unwrap(), (StatusCode::OK, "0".into()));
    }
    for _ in 0..5 {
        // The window is full, which the peek reports although a permit was granted.
        let refused = world.get("/").await;
        assert_eq!(field(&refused, "x-ratelimit-resource"), "core");
    }
    world.clock.advance(Millis::from_secs(1));
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    world.clock.advance(Millis::from_secs(59));
    let again = [start(&world).await, start(&world).await];
    world.gate.add_permits(2);
    for request in again {
        assert_eq!(request.await.unwrap().0, StatusCode::OK, "no lease was left behind");
    }
}

#[tokio::test]
async fn a_limit_that_counts_refusals_is_charged_on_arrival() {
    let hammered = window("hammered", 2).with_refusals(Refusals::Counted).unwrap();
    let (world, _) = counted(vec![window("core", 1), hammered]);
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
    // Refused by the peek at the other limit, and counted.
    let refused = world.get("/").await;
    assert_eq!(field(&refused, "x-ratelimit-resource"), "core");
    assert_eq!(used_of_each(&world).await, [1, 2]);
}

#[tokio::test]
async fn one_rule_that_charges_on_arrival_decides_for_all() {
    let completion =
        Rule { charge: ChargeOn::Completion, ..rule("one", "/**", &[0], RuleMode::Enforce) };
    let arrival = rule("other", "/slow", &[1], RuleMode::Enforce);
    let limits = vec![window("core", 9), window("other", 9)];
    let world = World::new(policy(limits, vec![completion, arrival], github()));
    let running = start(&world).await;
    assert_eq!(field(&world.get("/").await, "x-ratelimit-used"), "2");
    running.abort();
}

#[tokio::test]
async fn an_answer_goes_out_though_its_charge_is_lost() {
    let (world, completions) = counted(vec![window("core", 9)]);
    world.limiter.store().next([Trouble::None, Trouble::Lost(StoreError::TimedOut)]);
    let response = world.get("/").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(field(&response, "x-ratelimit-remaining"), "8");
    assert_eq!(completions.counts(), CompletionCounts { lost: 1, ..Default::default() });
    assert_eq!(used(&world).await, "0");
}

#[tokio::test]
async fn nobody_waits_for_a_charge_on_completion() {
    let (world, completions) = counted(vec![window("core", 9)]);
    let store = Arc::new(Semaphore::new(0));
    world.limiter.store().next([Trouble::None, Trouble::Held(Arc::clone(&store))]);
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
    assert_eq!(completions.counts().charged, 0);
    store.add_permits(1);
    while completions.counts().charged == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(used(&world).await, "1");
}

#[tokio::test]
async fn what_passes_without_the_store_is_not_charged_later() {
    let given = on_completion(vec![window("core", 9)]);
    assert_eq!(given.rules()[0].on_failure, OnFailure::Local);
    let world = World::over(given, Faulty::new());
    world.limiter.store().next([Trouble::Lost(StoreError::Unavailable)]);
    let response = world.get("/").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(field(&response, "x-ratelimit-limit"), "");
    assert_eq!(world.limiter.store().calls(), 1);
}

#[tokio::test]
async fn what_nobody_waits_for_is_done_before_the_end() {
    let (world, completions) = counted(vec![window("core", 9)]);
    world.limiter.finished().await;
    let gate = Arc::new(Semaphore::new(0));
    world.limiter.store().next([Trouble::None, Trouble::Held(Arc::clone(&gate))]);
    assert_eq!(world.get("/").await.status(), StatusCode::OK);
    let mut finished = pin!(world.limiter.finished());
    tokio::task::yield_now().await;
    let is_done = finished.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    assert!(!is_done, "its charge has no answer yet");
    gate.add_permits(1);
    finished.await;
    assert_eq!((world.limiter.store().calls(), used_of_each(&world).await), (2, vec![1]));
    assert_eq!(completions.counts().charged, 1);
}

/// The bug: if the look refused the request, and the client disconnected before the store had
/// answered the release of the permit, the permit was held until it expired.
#[tokio::test]
async fn a_client_that_disconnected_during_the_release_of_its_permit_kept_the_permit() {
    let (world, _) = counted(vec![window("core", 1), concurrent(2)]);
    drop(world.get("/").await);
    assert_eq!(used_of_each(&world).await, [1, 0]);
    let never = Arc::new(Semaphore::new(0));
    world.limiter.store().next([Trouble::None, Trouble::Held(never)]);
    timeout(Duration::ZERO, world.get("/")).await.map(drop).expect_err("the release is held");
    assert_eq!(used_of_each(&world).await, [1, 0]);
}

/// The bug: a refused request was refunded by two store calls. If the client disconnected before the
/// first of them was answered, the second was not made, and its units stayed reserved.
#[tokio::test]
async fn a_client_that_disconnected_during_a_refund_kept_its_reservation() {
    let failures = window("failures", 9).with_counted([401].into_iter().collect());
    let limits = vec![window("core", 1), window("metered", 100), failures];
    let mut all = rule("all", "/**", &[0, 1, 2], RuleMode::Enforce);
    all.charge = ChargeOn::Completion;
    let meter = Arc::new(Meter::Size { bytes: NonZeroU64::MIN });
    all.metered.push(MeteredLimit { limit: 1, meter, reserve: None });
    let world = World::over(policy(limits, vec![all], github()), Faulty::new());
    drop(world.get("/").await);
    let before = used_of_each(&world).await;
    assert_eq!(before[0], 1, "the next request is refused");
    let never = Arc::new(Semaphore::new(0));
    world.limiter.store().next([Trouble::None, Trouble::Late(never)]);
    timeout(Duration::ZERO, world.get("/")).await.map(drop).expect_err("the refund is late");
    assert_eq!(used_of_each(&world).await, before);
}
