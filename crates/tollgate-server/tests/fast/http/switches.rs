//! Kill switches of rules and of load shedding.

use serde_json::{Value, json};
use tollgate::model::Millis;
use tollgate::store::Memory;
use tollgate_server::{Access, HttpOptions};

use crate::http::world::World;

fn administered() -> World {
    let options = HttpOptions { admin: Some(Access::Open), ..HttpOptions::default() };
    World::over(Memory::default(), options)
}

/// Sends a request that the rule `read` matches. The rule's limit `core` has a quota of three
/// units.
async fn send(world: &World) -> Value {
    let request = json!({ "request": {
        "method": "GET", "path": "/", "headers": { "authorization": "Bearer abc" },
    } });
    world.post("/v1/check", request.to_string()).await.ok()
}

async fn put(world: &World, of: Value) -> crate::http::world::Answered {
    let mut body = json!({ "expires_in": "1m", "reason": "it refuses partners" });
    body.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
    world.put("/v1/overrides", body.to_string()).await
}

async fn admitted(world: &World, times: usize) -> Vec<bool> {
    let mut admitted = Vec::new();
    for _ in 0..times {
        admitted.push(send(world).await["admitted"] == true);
    }
    admitted
}

#[tokio::test]
async fn a_rule_that_is_off_asks_none_of_its_limits_and_one_that_counts_stops_nobody() {
    let world = administered();
    assert_eq!(admitted(&world, 4).await, [true, true, true, false]);
    let set = put(&world, json!({ "rule": "read", "unlimited": true })).await.ok();
    let expected = json!({ "rule": "read", "unlimited": true, "expires": 1_700_000_060,
        "reason": "it refuses partners" });
    assert_eq!((&set["before"], &set["after"]), (&json!(null), &expected));
    let off = send(&world).await;
    assert_eq!((&off["admitted"], &off["rules"]), (&json!(true), &json!(["read"])));
    assert_eq!(off["statuses"], json!([]));

    let set = put(&world, json!({ "rule": "read", "counted": true })).await.ok();
    assert_eq!(set["before"], expected);
    let counted = send(&world).await;
    assert_eq!(counted["admitted"], true);
    assert_eq!(counted["shadow"]["admitted"], false, "{counted}");
    let rules = world.get("/v1/policy").await.ok()["rules"].clone();
    let of = |name: &str| {
        rules.as_array().unwrap().iter().find(|rule| rule["name"] == name).unwrap().clone()
    };
    assert_eq!(of("read")["switch"]["counted"], true);
    assert!(of("search")["switch"].is_null());

    world.clock.advance(Millis::from_secs(60));
    // The window has ended by then as well.
    assert_eq!(admitted(&world, 4).await, [true, true, true, false]);
}

#[tokio::test]
async fn a_switch_is_lifted_by_its_name_and_each_change_is_reported() {
    let world = administered();
    for (body, parameter) in [
        (json!({ "rule": "read", "unlimited": true }), "rule=read"),
        (json!({ "shedding": "all", "counted": true }), "shedding=all"),
        (json!({ "shedding": "worker", "unlimited": true }), "shedding=worker"),
    ] {
        put(&world, body).await.ok();
        let path = format!("/v1/overrides?{parameter}");
        let removed = world.delete(&path).await.ok();
        assert!(removed["before"].is_object() && removed["after"].is_null(), "{removed}");
        assert!(world.delete(&path).await.ok()["before"].is_null());
    }
    // The bug: of several targets, all but the last one were ignored.
    put(&world, json!({ "rule": "read", "unlimited": true })).await.ok();
    for query in ["everybody=true&rule=read", "shedding=all&rule=read", "rule=other&rule=read"] {
        let refused = world.delete(&format!("/v1/overrides?{query}")).await;
        assert!(String::from_utf8_lossy(&refused.bytes).contains("exactly one of"), "{query}");
        assert_eq!(refused.status, 422, "{query}");
    }
    // The bug: of several limits, all but the last one were ignored.
    let query = "limit=core&limit=search&subject[token]=abc";
    let refused = world.delete(&format!("/v1/overrides?{query}")).await;
    assert_eq!(refused.problem(422), "invalid-override");
    assert!(world.delete("/v1/overrides?rule=read").await.ok()["before"].is_object());
    let audit = world.get("/v1/audit").await.ok();
    let printed = audit.to_string();
    for words in ["\"rule\":\"read\"", "\"shedding\":\"all\"", "\"shedding\":\"worker\""] {
        assert!(printed.contains(words), "{words} in {printed}");
    }
}

#[tokio::test]
async fn what_cannot_be_switched_is_refused_with_a_reason() {
    let world = administered();
    for (body, words) in [
        (json!({ "rule": "raed", "unlimited": true }), "did you mean \"read\"?"),
        (json!({ "rule": "read", "blocked": true }), "either unlimited or counted"),
        (json!({ "rule": "read", "limit": "core", "counted": true }), "has no limit"),
        (json!({ "shedding": "fleet", "quota": 3 }), "either unlimited or counted"),
        (json!({ "shedding": "everything", "counted": true }), "everything"),
        (json!({ "shedding": "all", "rule": "read", "counted": true }), "give one of"),
    ] {
        let answered = put(&world, body).await;
        let printed = String::from_utf8_lossy(&answered.bytes).into_owned();
        assert!(answered.status.is_client_error(), "{printed}");
        assert!(answered.json()["detail"].as_str().unwrap().contains(words), "{words}: {printed}");
    }
    assert_eq!(world.get("/v1/overrides").await.ok()["overrides"], json!([]));
    for query in ["shedding=none", "rule=nobody"] {
        let printed = world.delete(&format!("/v1/overrides?{query}")).await;
        assert!(printed.status.is_client_error(), "{query}");
    }
}
