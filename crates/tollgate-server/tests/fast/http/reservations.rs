//! Reservations over HTTP: reserved, extended, settled once and released.

use serde_json::{Value, json};
use tollgate::model::Millis;

use crate::http::world::World;

/// Returns the charges of 2 units of `core` and one permit of `flight`.
fn limits(token: &str) -> Value {
    json!([
        { "name": "core", "cost": 2, "subject": { "token": token } },
        { "name": "flight", "subject": { "token": token } },
    ])
}

/// Returns the body that reserves both limits for 30 s.
fn both(token: &str) -> String {
    json!({ "limits": limits(token), "ttl_ms": 30_000 }).to_string()
}

fn receipt(answer: &Value) -> &str {
    answer["receipt"].as_str().unwrap()
}

async fn limit_status(world: &World) -> Value {
    let path = "/v1/standing?limit=core&limit=flight&subject[token]=abc";
    let printed = world.get(path).await.ok();
    let of = |index: usize| {
        let limit_status = &printed["statuses"][index];
        (
            limit_status["used"].clone(),
            limit_status.get("reserved").cloned().unwrap_or_else(|| json!(0)),
        )
    };
    json!([of(0), of(1)])
}

#[tokio::test]
async fn what_is_reserved_is_settled_by_name_once() {
    let world = World::new();
    let reserved = world.post("/v1/reserve", both("abc")).await.ok();
    assert_eq!(reserved["admitted"], true);
    assert_eq!(reserved["statuses"][0]["reserved"], 2);
    assert_eq!(limit_status(&world).await, json!([[2, 2], [1, 1]]));
    let refused = world.post("/v1/reserve", both("abc")).await.ok();
    assert_eq!((&refused["admitted"], &refused["refused_by"]), (&json!(false), &json!(["core"])));
    assert_eq!(refused["retry_after_ms"], 30_000, "as soon as the reservation runs out");
    assert!(refused.get("receipt").is_none());
    let settle = json!({
        "receipt": receipt(&reserved), "limits": [{ "name": "core", "cost": 1 }],
    });
    let settled = world.post("/v1/settle", settle.to_string()).await.ok();
    assert_eq!(settled["outcome"], "settled");
    let core = &settled["limits"][0];
    assert_eq!(
        (&core["name"], &core["refunded"], &core["added"]),
        (&json!("core"), &json!(1), &json!(0))
    );
    assert_eq!((&core["used"], &core["remaining"]), (&json!(1), &json!(2)));
    assert_eq!(settled["limits"][1]["refunded"], 1, "the lease ends");
    assert_eq!(limit_status(&world).await, json!([[1, 0], [0, 0]]));
    let again = world.post("/v1/settle", settle.to_string()).await.ok();
    assert_eq!(again["outcome"], "unchanged");
    assert_eq!(limit_status(&world).await, json!([[1, 0], [0, 0]]));
}

#[tokio::test]
async fn a_reservation_is_put_off_and_then_runs_out() {
    let world = World::new();
    let core = json!({
        "limits": [{ "name": "core", "cost": 3, "subject": { "token": "abc" } }], "ttl_ms": 10_000,
    });
    let reserved = world.post("/v1/reserve", core.to_string()).await.ok();
    world.clock.advance(Millis::from_secs(9));
    let extend = json!({ "receipt": receipt(&reserved), "ttl_ms": 20_000 });
    let extended = world.post("/v1/extend", extend.to_string()).await.ok();
    assert_eq!(extended["outcome"], "extended");
    assert_eq!(extended["expires_at_ms"], 1_700_000_029_000_u64);
    assert_eq!(extended["statuses"][0]["reserved"], 3);
    world.clock.advance(Millis::from_secs(11));
    assert_eq!(limit_status(&world).await, json!([[3, 3], [0, 0]]), "it would have run out");
    let old = json!({ "receipt": receipt(&reserved), "cost": 1 });
    assert_eq!(world.post("/v1/settle", old.to_string()).await.ok()["outcome"], "expired");
    world.clock.advance(Millis::from_secs(9));
    assert_eq!(limit_status(&world).await, json!([[0, 0], [0, 0]]), "released by itself");
    let late = json!({ "receipt": receipt(&extended), "cost": 1 });
    assert_eq!(world.post("/v1/settle", late.to_string()).await.ok()["outcome"], "expired");
}

#[tokio::test]
async fn a_request_is_reserved_by_the_rules_and_released() {
    let world = World::new();
    let request = json!({ "request": {
        "method": "GET", "path": "/", "headers": { "authorization": "abc" },
    }});
    let reserved = world.post("/v1/reserve", request.to_string()).await.ok();
    assert_eq!(reserved["rules"], json!(["read"]));
    assert_eq!(limit_status(&world).await, json!([[1, 1], [0, 0]]));
    let release = json!({ "receipt": receipt(&reserved) });
    let released = world.post("/v1/release", release.to_string()).await.ok();
    assert_eq!(
        (&released["outcome"], &released["limits"][0]["refunded"]),
        (&json!("refunded"), &json!(1))
    );
    assert_eq!(limit_status(&world).await, json!([[0, 0], [0, 0]]));
    let again = world.post("/v1/release", release.to_string()).await.ok();
    assert_eq!(again["outcome"], "unchanged");
}

#[tokio::test]
async fn a_repeated_key_holds_once() {
    let world = World::new();
    let key = [("idempotency-key", "one")];
    let first = world.post_with("/v1/reserve", &key, both("abc")).await;
    let second = world.post_with("/v1/reserve", &key, both("abc")).await;
    assert_eq!(first.bytes, second.bytes);
    assert_eq!(second.headers["idempotency-replayed"], "true");
    assert_eq!(limit_status(&world).await, json!([[2, 2], [1, 1]]));
}

#[tokio::test]
async fn what_cannot_be_meant_is_reported_with_its_place() {
    let world = World::new();
    let reserved = world.post("/v1/reserve", both("abc")).await.ok();
    let charged =
        world.post("/v1/check", json!({ "limits": limits("def") }).to_string()).await.ok();
    let settle = |more: Value| {
        let mut requested = json!({ "receipt": receipt(&reserved) });
        requested.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        requested.to_string()
    };
    let core = json!({ "name": "core", "cost": 1 });
    for (requested, status, kind) in [
        (settle(json!({})), 400, "invalid-request"),
        (settle(json!({ "cost": 1, "limits": [core] })), 400, "invalid-request"),
        (settle(json!({ "limits": [] })), 400, "invalid-request"),
        (settle(json!({ "limits": [core, core] })), 400, "invalid-request"),
        (settle(json!({ "limits": [{ "name": "cor", "cost": 1 }] })), 422, "unknown-limit"),
        (settle(json!({ "cost": -1 })), 400, "invalid-request"),
        (json!({ "receipt": "AAAA", "cost": 1 }).to_string(), 400, "invalid-receipt"),
        (json!({ "receipt": receipt(&charged), "cost": 1 }).to_string(), 400, "invalid-receipt"),
    ] {
        assert_eq!(
            world.post("/v1/settle", requested.clone()).await.problem(status),
            kind,
            "{requested}"
        );
    }
    let extend = json!({ "receipt": receipt(&charged), "ttl_ms": 1 });
    assert_eq!(world.post("/v1/extend", extend.to_string()).await.problem(400), "invalid-receipt");
    let neither = json!({ "ttl_ms": 1 }).to_string();
    assert_eq!(world.post("/v1/reserve", neither).await.problem(400), "invalid-request");
    assert_eq!(limit_status(&world).await, json!([[2, 2], [1, 1]]), "nothing was settled");
}
