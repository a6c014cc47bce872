//! Charges by name, by request, and in batches; peeks; refunds.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::store::Memory;
use tollgate_server::{Access, HttpOptions, Tokens};

use crate::http::world::World;

fn core(token: &str) -> String {
    json!({ "limits": [{ "name": "core", "subject": { "token": token } }] }).to_string()
}

#[tokio::test]
async fn a_limit_is_charged_by_its_name() {
    let world = World::new();
    let first = world.post("/v1/check", core("abc")).await.ok();
    let limit_status = &first["statuses"][0];
    assert_eq!(first["admitted"], true);
    assert_eq!((&first["source"], &first["policy"]), (&json!("store"), &json!("v1")));
    assert_eq!(limit_status["name"], "core");
    assert_eq!((&limit_status["used"], &limit_status["remaining"]), (&json!(1), &json!(2)));
    assert_eq!(limit_status["reset"], 1_700_000_060);
    assert_eq!(first["headers"]["x-ratelimit-remaining"], "2");
    assert!(first["receipt"].is_string() && first.get("retry_after_ms").is_none());
    // The same subject, in another spelling of its credential.
    for _ in 0..2 {
        assert_eq!(world.post("/v1/check", core("Bearer abc")).await.ok()["admitted"], true);
    }
    let refused = world.post("/v1/check", core("abc")).await.ok();
    assert_eq!((&refused["admitted"], &refused["refused_by"]), (&json!(false), &json!(["core"])));
    assert_eq!(refused["retry_after_ms"], 60_000);
    assert_eq!(refused["headers"]["retry-after"], "60");
    assert!(refused.get("receipt").is_none());
    assert_eq!(world.post("/v1/check", core("other")).await.ok()["admitted"], true);
}

#[tokio::test]
async fn a_minimal_answer_says_the_same_without_receipt_and_fields() {
    const MINIMAL: [(&str, &str); 1] = [("prefer", "return=minimal")];
    let (world, asked_whole) = (World::new(), World::new());
    for _ in 0..4 {
        let mut whole = asked_whole.post("/v1/check", core("abc")).await.ok();
        let printed = whole.as_object_mut().unwrap();
        printed.remove("receipt");
        printed.remove("headers").expect("the whole answer has them");
        let minimal = world.post_with("/v1/check", &MINIMAL, core("abc")).await.ok();
        assert_eq!(minimal, whole);
    }
    let peeked = world.post_with("/v1/peek", &MINIMAL, core("abc")).await.ok();
    assert!(peeked.get("headers").is_none() && peeked["admitted"] == false);
    let batch = format!("{{\"checks\":[{}]}}", core("abc"));
    let decisions = world.post_with("/v1/check/batch", &MINIMAL, batch).await.ok();
    assert!(decisions["decisions"][0].get("headers").is_none());
    // A reservation could not be settled without its receipt.
    let reserved = world.post_with("/v1/reserve", &MINIMAL, core("def")).await.ok();
    assert!(reserved["receipt"].is_string() && reserved["headers"].is_object());
}

#[tokio::test]
async fn a_request_meets_the_rules_and_the_same_counters() {
    let world = World::new();
    let request = json!({ "request": {
        "method": "GET", "path": "/users?page=2", "host": "api.example.com",
        "client_address": "192.0.2.1", "headers": { "Authorization": "token abc" },
    }});
    let met = world.post("/v1/check", request.to_string()).await.ok();
    assert_eq!(met["rules"], json!(["read"]));
    let names: Vec<&Value> = met["statuses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|limit_status| &limit_status["name"])
        .collect();
    assert_eq!(names, ["core", "everybody"]);
    assert_eq!(met["statuses"][1]["visible"], false);
    let named = world.post("/v1/check", core("abc")).await.ok();
    assert_eq!(named["statuses"][0]["used"], 2);
    let stranger = json!({ "request": { "method": "GET", "path": "/" } });
    let stranger = world.post("/v1/check", stranger.to_string()).await.ok();
    assert_eq!(stranger["rules"], json!(["stranger"]));
}

#[tokio::test]
async fn all_limits_of_a_charge_or_none() {
    let world = World::new();
    let both = json!({ "limits": [
        { "name": "core", "cost": 2, "subject": { "token": "abc" } },
        { "name": "anonymous", "cost": 3, "subject": { "address": "192.0.2.1" } },
    ]});
    let refused = world.post("/v1/check", both.to_string()).await.ok();
    assert_eq!(
        (&refused["admitted"], &refused["refused_by"]),
        (&json!(false), &json!(["anonymous"]))
    );
    // Left out, because the cost is higher than the limit's capacity.
    assert!(refused.get("retry_after_ms").is_none());
    assert_eq!(world.post("/v1/peek", core("abc")).await.ok()["statuses"][0]["used"], 0);
}

#[tokio::test]
async fn a_peek_charges_nothing() {
    let world = World::new();
    for _ in 0..5 {
        let peeked = world.post("/v1/peek", core("abc")).await.ok();
        assert_eq!(
            (&peeked["admitted"], &peeked["statuses"][0]["used"]),
            (&json!(true), &json!(0))
        );
        assert!(peeked.get("receipt").is_none());
    }
    let four = json!({ "limits": [{ "name": "core", "cost": 4, "subject": { "token": "abc" } }] });
    assert_eq!(world.post("/v1/peek", four.to_string()).await.ok()["admitted"], false);
}

#[tokio::test]
async fn charges_of_a_batch_stand_each_for_itself() {
    let world = World::new();
    let one: Value = serde_json::from_str(&core("abc")).unwrap();
    let batch =
        json!({ "checks": [one, one, one, one, { "request": { "method": "GET", "path": "/" } }] });
    let decisions =
        world.post("/v1/check/batch", batch.to_string()).await.ok()["decisions"].clone();
    let admitted: Vec<&Value> =
        decisions.as_array().unwrap().iter().map(|decision| &decision["admitted"]).collect();
    assert_eq!(admitted, [true, true, true, false, true]);
    // One invalid check refuses all of them, and the response contains its location.
    let wrong = json!({ "checks": [{ "limits": [{ "name": "everybody" }] }, { "limits": [{ "name": "cor" }] }] });
    let refused = world.post("/v1/check/batch", wrong.to_string()).await;
    assert_eq!(refused.problem(422), "unknown-limit");
    assert_eq!(refused.json()["pointer"], "/checks/1/limits/0");
    assert!(refused.json()["detail"].as_str().unwrap().contains("did you mean \"core\"?"));
    let everybody = json!({ "limits": [{ "name": "everybody" }] }).to_string();
    assert_eq!(world.post("/v1/peek", everybody).await.ok()["statuses"][0]["used"], 0);
}

#[tokio::test]
async fn a_receipt_is_refunded_once_and_says_so() {
    let world = World::new();
    let receipt = world.post("/v1/check", core("abc")).await.ok()["receipt"].clone();
    let refund = json!({ "receipt": receipt }).to_string();
    let first = world.post("/v1/refund", refund.clone()).await.ok();
    assert_eq!(first["outcome"], "refunded");
    assert_eq!(
        (&first["limits"][0]["refunded"], &first["limits"][0]["used"]),
        (&json!(1), &json!(0))
    );
    world.post("/v1/check", core("abc")).await.ok();
    let again = world.post("/v1/refund", refund.clone()).await.ok();
    assert_eq!((&again["outcome"], &again["limits"][0]["used"]), (&json!("unchanged"), &json!(1)));
    world.clock.advance(tollgate::model::Millis::from_secs(60));
    assert_eq!(world.post("/v1/refund", refund).await.ok()["outcome"], "expired");
    let forged = json!({ "receipt": "AAAA" }).to_string();
    assert_eq!(world.post("/v1/refund", forged).await.problem(400), "invalid-receipt");
}

#[tokio::test]
async fn a_release_makes_room_in_flight_and_counts_on() {
    let world = World::new();
    let charge = json!({ "limits": [
        { "name": "everybody" },
        { "name": "flight", "cost": 2, "subject": { "token": "abc" } },
    ]})
    .to_string();
    let receipt = world.post("/v1/check", charge.clone()).await.ok()["receipt"].clone();
    assert_eq!(world.post("/v1/check", charge.clone()).await.ok()["admitted"], false);
    let released = json!({ "receipt": receipt }).to_string();
    let released = world.post("/v1/release", released).await.ok();
    assert_eq!(
        (&released["outcome"], &released["limits"][0]["used"]),
        (&json!("refunded"), &json!(0))
    );
    let next = world.post("/v1/check", charge).await.ok();
    assert_eq!((&next["admitted"], &next["statuses"][0]["used"]), (&json!(true), &json!(2)));
}

#[tokio::test]
async fn a_reported_status_refunds_what_the_policy_refunds_for_it() {
    let policy = "
subjects: { token: { header: authorization } }
limits:
  failures: { quota: 5, window: 15m, per: token, count: { status: [401, 403] } }
  core:     { quota: 99, window: 1m, per: token }
  reads:    { quota: 99, window: 1m, per: token }
rules:
  - { name: sign-in, limits: [failures, core] }
  - { name: reads, limits: reads, refund: [5xx] }
rules_apply: all_matches
answers: { refund: { status: 304 } }
";
    let world = World::of(tollgate_policy::parse("test.yaml", policy).unwrap().policy);
    let request = json!({ "request": {
        "method": "POST", "path": "/login", "headers": { "authorization": "abc" },
    }});
    let mut used = [0, 0, 0];
    for (status, [failures, core, reads]) in
        [(401, [1, 1, 1]), (200, [0, 1, 1]), (503, [0, 1, 0]), (304, [0, 0, 1])]
    {
        let charged = world.post("/v1/check", request.to_string()).await.ok();
        let report = json!({ "receipt": charged["receipt"], "status": status }).to_string();
        let reported = world.post("/v1/refund", report.clone()).await;
        reported.ok();
        for (used, kept) in used.iter_mut().zip([failures, core, reads]) {
            *used += kept;
        }
        // A report has an effect once.
        world.post("/v1/refund", report).await.ok();
        let seen = world.post("/v1/peek", request.to_string()).await.ok();
        let seen: Vec<u64> = seen["statuses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|limit_status| limit_status["used"].as_u64().unwrap())
            .collect();
        assert_eq!(seen, used, "after {status}");
    }
    let charged = world.post("/v1/check", request.to_string()).await.ok();
    let wrong = json!({ "receipt": charged["receipt"], "status": 99 }).to_string();
    world.post("/v1/refund", wrong).await.problem(400);
}

/// The bug: requests without a decision were recorded, so they lowered the percentiles.
#[tokio::test]
async fn the_durations_contained_requests_without_a_decision() {
    let access = Access::Tokens(Tokens::parse("0123456789abcdef").unwrap());
    let options = HttpOptions { access, ..HttpOptions::default() };
    let latency = Arc::clone(&options.latency);
    let world = World::over(Memory::default(), options);
    let token = ("authorization", "Bearer 0123456789abcdef");
    let check = r#"{"limits":[{"name":"everybody"}]}"#;
    let cases: [(_, &[(&str, &str)], _, _, _); 10] = [
        ("/v1/check", &[], check, 401, 0),
        ("/v1/check", &[token], "{", 400, 0),
        ("/v1/check", &[token, ("idempotency-key", "a b")], check, 400, 0),
        ("/v1/authorize", &[], "", 403, 0),
        ("/json", &[token], "{", 400, 0),
        ("/v1/check", &[token], check, 200, 1),
        ("/v1/check", &[token, ("idempotency-key", "a")], check, 200, 2),
        // The response of the first request.
        ("/v1/check", &[token, ("idempotency-key", "a")], check, 200, 2),
        ("/v1/reserve", &[token], check, 200, 3),
        ("/json", &[token], r#"{"domain":"edge","descriptors":[]}"#, 400, 3),
    ];
    for (path, fields, body, status, recorded) in cases {
        let answered = world.post_with(path, fields, body).await;
        assert_eq!(answered.status.as_u16(), status, "{path} {body} {answered:?}");
        assert_eq!(latency.read().count(), recorded, "{path} {body}");
    }
}
