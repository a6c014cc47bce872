//! `PUT /v1/rollout`: access, valid values and responses.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use tollgate::model::Percent;
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::store::Memory;
use tollgate_server::http::HttpOptions;
use tollgate_server::{Access, Tokens};

use crate::http::world::{Answered, World};

const ADMIN: &str = "fedcba9876543210";

/// Opens a listener for administrators over a store whose rollout is `rollout`, if there is one.
fn world(rollout: Option<RolloutPercentage>) -> World {
    let access = Access::Tokens(Tokens::parse(ADMIN).unwrap());
    let admin = Some(access.clone());
    let options = HttpOptions { access, admin, rollout, ..HttpOptions::default() };
    World::over(Memory::default(), options)
}

async fn put(world: &World, body: &str) -> Answered {
    let request = Request::put("/v1/rollout")
        .header("authorization", format!("Bearer {ADMIN}"))
        .header("content-type", "application/json");
    world.call(request.body(Body::from(body.to_owned())).unwrap()).await
}

#[tokio::test]
async fn each_turn_reports_what_was_before_and_is_in_force_at_once() {
    let percentage = RolloutPercentage::new(Percent::NONE);
    let world = world(Some(percentage.clone()));
    let mut before = json!(0);
    for (requested, printed, parts) in [
        ("30", json!(30), 3_000),
        ("0.1", json!(0.1), 10),
        ("100.0", json!(100), 10_000),
        ("100", json!(100), 10_000),
        ("0", json!(0), 0),
    ] {
        let answered = put(&world, &format!("{{\"percent\": {requested}}}")).await.ok();
        assert_eq!(answered, json!({ "percent": printed, "before": before }));
        assert_eq!(percentage.get().parts(), parts);
        before = printed;
    }
}

#[tokio::test]
async fn what_is_no_percentage_turns_nothing() {
    let percentage = RolloutPercentage::new(Percent::new(7).unwrap());
    let world = world(Some(percentage.clone()));
    for (body, name, pointer) in [
        ("{\"percent\": 101}", "invalid-request", "/percent"),
        ("{\"percent\": 18446744073709551615}", "invalid-request", "/percent"),
        ("{\"percent\": -1}", "invalid-request", "/percent"),
        ("{\"percent\": 30.555}", "invalid-request", "/percent"),
        ("{\"percent\": 1e3}", "invalid-request", "/percent"),
        ("{\"percent\": \"30\"}", "invalid-request", "/percent"),
        ("{\"percent\": null}", "invalid-request", "/percent"),
        ("{\"percent\": 30, \"percent\": 40}", "invalid-request", ""),
        ("{\"percents\": 30}", "invalid-request", ""),
        ("{}", "invalid-request", ""),
        ("30", "invalid-request", ""),
        ("{\"percent\": 30", "invalid-json", ""),
        ("", "invalid-json", ""),
    ] {
        let answered = put(&world, body).await;
        assert_eq!(answered.problem(400), name, "{body}");
        let printed = answered.json();
        if !pointer.is_empty() {
            assert_eq!(printed["pointer"], pointer, "{body}: {printed}");
        }
        assert_eq!(percentage.get(), Percent::new(7).unwrap(), "{body}");
    }
}

#[tokio::test]
async fn a_store_that_is_no_rollout_cannot_be_turned() {
    let answered = put(&world(None), "{\"percent\": 30}").await;
    assert_eq!(answered.problem(404), "not-found");
    let printed = answered.json();
    assert!(printed["detail"].as_str().unwrap().contains("no rollout"), "{printed}");
}

#[tokio::test]
async fn only_an_administrator_turns_it() {
    let percentage = RolloutPercentage::new(Percent::NONE);
    let send = async |world: &World, token: Option<&str>| {
        let request = Request::put("/v1/rollout").header("content-type", "application/json");
        let request = token.into_iter().fold(request, |request, token| {
            request.header("authorization", format!("Bearer {token}"))
        });
        world.call(request.body(Body::from("{\"percent\": 30}")).unwrap()).await
    };
    let guarded = world(Some(percentage.clone()));
    assert_eq!(send(&guarded, None).await.problem(401), "unauthorized");
    assert_eq!(send(&guarded, Some("0123456789abcdef")).await.problem(401), "unauthorized");
    // A listener for callers does not serve the route, whatever token is sent.
    let options = HttpOptions { rollout: Some(percentage.clone()), ..HttpOptions::default() };
    let callers = World::over(Memory::default(), options);
    assert_eq!(send(&callers, Some(ADMIN)).await.problem(403), "forbidden");
    assert_eq!(percentage.get(), Percent::NONE);
}
