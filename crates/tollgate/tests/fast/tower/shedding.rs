//! Tests of requests that are shed before their limits are charged, and of the slots of requests in
//! flight.

use std::num::NonZeroU32;

use http::StatusCode;
use tollgate::model::policy::shedding::{
    FleetShedding, InFlightBound, ShedMode, Shedding, WorkerShedding,
};
use tollgate::model::policy::{Policy, Priority, ResponseSettings, Rule, RuleMode};
use tollgate::model::{Limit, Millis};

use crate::tower::world::{World, field, github, policy, rule, text, window};

/// Returns a policy with one slot for noncritical requests in a fleet with two slots. `/charge` is
/// critical.
fn fleet(mode: ShedMode) -> Policy {
    let rules = vec![critical(rule("charge", "/charge", &[0], RuleMode::Enforce)), all()];
    let mut limits: Vec<Limit> = vec![window("core", 3)];
    let pools = FleetShedding::limits(2, 1, Millis::from_secs(30)).unwrap();
    limits.extend(pools.iter().map(|pool| (*pool.limit).clone()));
    let fleet = FleetShedding { mode, pool: 1, noncritical: 2 };
    let shedding = Shedding { fleet: Some(fleet), ..Shedding::default() };
    shared(&policy(limits, rules, github()), shedding)
}

fn worker() -> Policy {
    let bound = InFlightBound::Fixed(NonZeroU32::MIN);
    let worker = WorkerShedding { in_flight: Some(bound), ..WorkerShedding::default() };
    let shedding = Shedding { worker: Some(worker), ..Shedding::default() };
    policy(vec![window("core", 3)], vec![all()], ResponseSettings::default())
        .with_shedding(shedding)
        .unwrap()
}

fn all() -> Rule {
    rule("all", "/**", &[0], RuleMode::Enforce)
}

fn critical(rule: Rule) -> Rule {
    Rule { priority: Some(Priority::Critical), ..rule }
}

/// Returns the same policy with pool limits that all subjects share.
fn shared(policy: &Policy, shedding: Shedding) -> Policy {
    let mut limits = policy.limits().to_vec();
    limits[1..].iter_mut().for_each(|pool| pool.per.clear());
    let (dimensions, rules) = (policy.dimensions().to_vec(), policy.rules().to_vec());
    let answers = policy.answers().clone();
    let first = tollgate::model::policy::MatchMode::FirstMatch;
    let policy = Policy::new(dimensions, limits, rules, first).unwrap().with_answers(answers);
    policy.with_shedding(shedding).unwrap()
}

#[tokio::test]
async fn what_the_fleet_has_no_place_for_is_a_503_that_costs_nothing() {
    let world = World::new(fleet(ShedMode::Enforce));
    let running = world.get("/").await;
    assert_eq!(running.status(), StatusCode::OK);
    for _ in 0..5 {
        let shed = world.get("/").await;
        assert_eq!(shed.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(field(&shed, "retry-after"), "1");
        assert_eq!(field(&shed, "content-type"), "application/problem+json");
        assert_eq!(field(&shed, "x-ratelimit-remaining"), "", "no limit was asked");
        let body = text(shed).await;
        assert!(body.contains(r#""shed-by":"fleet","priority":"read""#), "{body}");
    }
    // The reserved slot, and the second unit of three.
    let charge = world.get("/charge").await;
    assert_eq!(charge.status(), StatusCode::OK);
    assert_eq!(field(&charge, "x-ratelimit-used"), "2");
    assert_eq!(world.get("/charge").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    // A slot is free when the response has ended.
    assert_eq!(text(running).await, "served");
    let third = world.get("/").await;
    assert_eq!((third.status(), field(&third, "x-ratelimit-used")), (StatusCode::OK, "3"));
    drop((charge, third));
    // A request that a limit refuses releases its fleet slot at once.
    for _ in 0..5 {
        assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    }
}

#[tokio::test]
async fn in_shadow_mode_and_switched_off_the_fleet_stops_nobody() {
    for mode in [ShedMode::Shadow, ShedMode::Off] {
        let world = World::new(fleet(mode));
        let mut running = Vec::new();
        for _ in 0..3 {
            running.push(world.get("/").await);
        }
        assert!(running.iter().all(|answer| answer.status() == StatusCode::OK), "{mode:?}");
    }
}

#[tokio::test]
async fn a_worker_counts_a_request_until_its_answer_has_ended() {
    let world = World::new(worker());
    let (one, other) = (world.get("/").await, world.get("/").await);
    assert_eq!(world.limiter.worker().status().in_flight, 2);
    let shed = world.get("/").await;
    assert_eq!(shed.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = text(shed).await;
    assert!(body.contains(r#""shed-by":"in_flight""#), "{body}");
    assert_eq!(text(one).await, "served");
    let third = world.get("/").await;
    assert_eq!(third.status(), StatusCode::OK, "it was charged the third unit");
    drop((other, third));
    assert_eq!(world.limiter.worker().status().in_flight, 0);
    assert_eq!(world.get("/").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(world.limiter.worker().status().in_flight, 0);
}

#[tokio::test]
async fn a_client_that_is_gone_is_in_flight_no_more() {
    let world = World::new(worker());
    let request = tokio::spawn(world.get("/slow"));
    while world.limiter.worker().status().in_flight == 0 {
        tokio::task::yield_now().await;
    }
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    assert_eq!(world.limiter.worker().status().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn lateness_of_tasks_is_measured_where_the_policy_asks_for_it() {
    let worker = WorkerShedding { loop_delay: Some(Millis::new(1)), ..WorkerShedding::default() };
    let shedding = Shedding { worker: Some(worker), ..Shedding::default() };
    let policy = policy(vec![window("core", 3)], vec![all()], ResponseSettings::default());
    let world = World::new(policy.with_shedding(shedding).unwrap());
    let watch = tokio::spawn(std::sync::Arc::clone(&world.limiter).watch_load());
    // Virtual time advances without waiting, so real time is never late.
    for _ in 0..100 {
        world.clock.advance(Millis::new(20));
        tokio::time::advance(std::time::Duration::from_millis(20)).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(world.limiter.worker().status().level, 0);
    watch.abort();
}
