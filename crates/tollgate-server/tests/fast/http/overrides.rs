//! Overrides of the policy for some subjects and for a limited time.

use serde_json::{Value, json};
use tollgate::model::Millis;
use tollgate::store::Memory;
use tollgate_server::{Access, HttpOptions, Tokens};

use crate::http::world::World;

fn administered() -> World {
    let options = HttpOptions { admin: Some(Access::Open), ..HttpOptions::default() };
    World::over(Memory::default(), options)
}

/// Returns the decision on a charge on `core` for a token.
async fn charge(world: &World, token: &str) -> Value {
    let charge = json!({ "limits": [{ "name": "core", "subject": { "token": token } }] });
    world.post("/v1/check", charge.to_string()).await.ok()
}

async fn set(world: &World, of: Value) -> Value {
    let mut body = json!({ "expires_in": "1m", "reason": "a test" });
    body.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
    world.put("/v1/overrides", body.to_string()).await.ok()
}

#[tokio::test]
async fn another_quota_is_in_force_in_the_window_that_runs_and_until_it_ends() {
    let world = administered();
    for _ in 0..3 {
        assert_eq!(charge(&world, "abc").await["admitted"], true);
    }
    assert_eq!(charge(&world, "abc").await["admitted"], false);
    // Before the end of the window, which has 60 s.
    let of = json!({ "limit": "core", "subject": { "token": "Bearer abc" }, "quota": 5 });
    let answer = set(
        &world,
        json!({ "expires_in": "30s", "limit": of["limit"],
        "subject": of["subject"], "quota": of["quota"] }),
    )
    .await;
    assert_eq!((&answer["before"], &answer["after"]["quota"]), (&json!(null), &json!(5)));
    assert_eq!(answer["after"]["expires"], 1_700_000_030);
    let admitted = charge(&world, "abc").await;
    assert_eq!(admitted["admitted"], true);
    let expected = json!([{ "limit": "core", "effect": "quota", "expires": 1_700_000_030 }]);
    assert_eq!(admitted["overrides"], expected);
    assert!(charge(&world, "other").await["overrides"].is_null());
    assert_eq!(
        (&admitted["statuses"][0]["used"], &admitted["statuses"][0]["limit"]),
        (&json!(4), &json!(5))
    );
    assert_eq!(charge(&world, "other").await["statuses"][0]["limit"], 3);
    world.clock.advance(Millis::from_secs(30));
    let over = charge(&world, "abc").await;
    assert_eq!((&over["admitted"], &over["statuses"][0]["limit"]), (&json!(false), &json!(3)));
    assert_eq!(world.get("/v1/overrides").await.ok()["overrides"], json!([]));
}

#[tokio::test]
async fn who_is_blocked_is_reported_until_when_and_never_why() {
    let world = administered();
    let group = json!({ "group": { "address": "203.0.113.0/24" }, "blocked": true,
        "reason": "scraping since Monday" });
    set(&world, group).await;
    let request = |address: &str| {
        json!({ "request": { "method": "GET", "path": "/", "client_address": address } })
            .to_string()
    };
    let refused = world.post("/v1/check", request("203.0.113.9")).await;
    assert!(!String::from_utf8_lossy(&refused.bytes).contains("scraping"));
    let refused = refused.ok();
    assert_eq!(refused["admitted"], false);
    assert_eq!(
        (&refused["source"], &refused["refused_by"]),
        (&json!("deny_cache"), &json!(["anonymous"]))
    );
    assert_eq!(refused["retry_after_ms"], 60_000);
    assert_eq!(refused["statuses"][0]["remaining"], 0);
    assert_eq!(refused["overrides"][0]["effect"], "blocked");
    assert_eq!(world.post("/v1/check", request("203.0.114.9")).await.ok()["admitted"], true);
    // Nothing was counted while the override was active.
    let removed = world.delete("/v1/overrides?group[address]=203.0.113.0/24").await.ok();
    assert_eq!((&removed["before"]["blocked"], &removed["after"]), (&json!(true), &json!(null)));
    let admitted = world.post("/v1/check", request("203.0.113.9")).await.ok();
    assert_eq!(admitted["statuses"][0]["used"], 1);
    // The override has been removed already.
    let again = world.delete("/v1/overrides?group[address]=203.0.113.0/24").await.ok();
    assert_eq!(again["before"], json!(null));
}

#[tokio::test]
async fn an_override_without_an_end_stays_until_it_is_removed() {
    let world = administered();
    let of = json!({ "subject": { "token": "abc" }, "blocked": true, "expires_in": "never" });
    let answer = set(&world, of).await;
    assert_eq!(answer["after"]["expires"], Value::Null);
    for _ in 0..3 {
        let refused = charge(&world, "abc").await;
        assert_eq!(
            (&refused["admitted"], &refused["overrides"][0]["expires"]),
            (&json!(false), &Value::Null)
        );
        // A time that clients can compute with.
        assert_eq!(refused["retry_after_ms"], 366_u64 * 86_400_000);
        world.clock.advance(Millis::from_secs(10 * 365 * 86_400));
    }
    let listed = world.get("/v1/overrides").await.ok();
    assert_eq!(listed["overrides"][0]["expires"], Value::Null);
    world.delete("/v1/overrides?subject[token]=abc").await.ok();
    assert_eq!(charge(&world, "abc").await["admitted"], true);
}

#[tokio::test]
async fn who_is_unlimited_passes_and_is_not_counted() {
    let world = administered();
    set(&world, json!({ "subject": { "token": "abc" }, "unlimited": true })).await;
    for _ in 0..5 {
        let answer = charge(&world, "abc").await;
        assert_eq!((&answer["admitted"], &answer["statuses"]), (&json!(true), &json!([])));
    }
    world.delete("/v1/overrides?subject[token]=abc").await.ok();
    assert_eq!(charge(&world, "abc").await["statuses"][0]["used"], 1);
}

/// The bug: if an override blocked one limit of a status query, the response left out all others.
#[tokio::test]
async fn a_blocked_limit_hid_the_status_of_the_others() {
    let world = administered();
    charge(&world, "abc").await;
    let subject = json!({ "token": "abc", "address": "192.0.2.1" });
    set(&world, json!({ "limit": "search", "subject": subject, "blocked": true })).await;
    let query = "limit=search&limit=core&subject[token]=abc&subject[address]=192.0.2.1";
    let standing = world.get(&format!("/v1/standing?{query}")).await.ok();
    let statuses = standing["statuses"].as_array().unwrap();
    let shown: Vec<_> =
        statuses.iter().map(|one| (&one["name"], &one["used"], &one["admits"])).collect();
    let expected =
        [(json!("search"), json!(2), json!(false)), (json!("core"), json!(1), json!(true))];
    assert_eq!(shown, expected.each_ref().map(|(name, used, admits)| (name, used, admits)));
    assert_eq!(standing["source"], "store");
    let blocked = world.get(&format!("/v1/standing?{}", query.replace("&limit=core", ""))).await;
    assert_eq!(blocked.ok()["source"], "deny_cache");
}

/// The bug: the response to a reset had the policy's quota, not the quota of the override.
#[tokio::test]
async fn a_reset_showed_the_quota_that_an_override_had_replaced() {
    let world = administered();
    set(&world, json!({ "limit": "core", "subject": { "token": "abc" }, "quota": 5 })).await;
    charge(&world, "abc").await;
    let path = "/v1/standing?limit=core&subject[token]=abc";
    let reset = world.delete(path).await.ok();
    let core = &reset["statuses"][0];
    assert_eq!(
        (&core["used"], &core["limit"], &core["remaining"]),
        (&json!(0), &json!(5), &json!(5))
    );
    assert_eq!(reset["statuses"], world.get(path).await.ok()["statuses"]);
    // The bug: a subject that an override blocks was shown as admitted.
    set(&world, json!({ "limit": "core", "subject": { "token": "abc" }, "blocked": true })).await;
    let reset = world.delete(path).await.ok();
    assert_eq!(reset["statuses"][0]["admits"], false);
    assert_eq!(reset["statuses"], world.get(path).await.ok()["statuses"]);
    set(&world, json!({ "limit": "core", "subject": { "token": "abc" }, "unlimited": true })).await;
    assert_eq!(world.delete(path).await.ok()["statuses"], json!([]));
}

#[tokio::test]
async fn a_subject_is_named_by_its_hash_as_it_is_shown() {
    let world = administered();
    let of = json!({ "limit": "search", "subject": { "token": "abc", "address": "2001:db8::1" },
        "blocked": true });
    let shown = set(&world, of).await["after"].clone();
    let subject = shown["subject"].as_object().unwrap();
    assert!(subject.values().all(|value| value.as_str().unwrap().starts_with('#')), "{shown}");
    let by_hash = json!({ "limit": "search", "subject": shown["subject"], "quota": 7 });
    assert_eq!(set(&world, by_hash).await["before"], shown);
    let listed = world.get("/v1/overrides").await.ok();
    assert_eq!(listed["overrides"].as_array().unwrap().len(), 1);
    assert_eq!((&listed["location"], &listed["version"]), (&json!("process"), &json!(2)));
    // A network in the form that the policy keeps of an address, with the parameters in another
    // order.
    let query = "limit=search&subject[address]=2001:db8::/64&subject[token]=token+abc";
    let removed = world.delete(&format!("/v1/overrides?{query}")).await.ok();
    assert_eq!(removed["before"]["quota"], 7);
}

#[tokio::test]
async fn only_administrators_are_informed_of_overrides_with_a_status() {
    let token = |text: &str| Access::Tokens(Tokens::parse(text).unwrap());
    let (caller, admin) = ("a caller's own token", "an administrator's token");
    let options =
        HttpOptions { access: token(caller), admin: Some(token(admin)), ..HttpOptions::default() };
    let world = World::over(Memory::default(), options);
    let send = async |token: &str, request: axum::http::request::Builder, body: String| {
        let request = request
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        world.call(request.body(body.into()).unwrap()).await
    };
    let body = json!({ "group": { "token": "abc" }, "blocked": true, "expires_in": "1h",
        "reason": "chargeback" });
    let put = axum::http::Request::put("/v1/overrides");
    assert_eq!(send(caller, put, body.to_string()).await.problem(403), "forbidden");
    send(admin, axum::http::Request::put("/v1/overrides"), body.to_string()).await.ok();
    let limit_status = || axum::http::Request::get("/v1/standing?limit=core&subject[token]=abc");
    let printed = send(caller, limit_status(), String::new()).await.ok();
    assert_eq!(
        (&printed["overrides"], &printed["statuses"][0]["remaining"]),
        (&json!(null), &json!(0))
    );
    let printed = send(admin, limit_status(), String::new()).await.ok();
    let expected = ("core", "chargeback", 1_700_003_600);
    let [one] = &**printed["overrides"].as_array().unwrap() else { panic!("{printed}") };
    assert_eq!(
        (&one["limit"], &one["reason"], &one["expires"]),
        (&json!(expected.0), &json!(expected.1), &json!(expected.2))
    );
    // A credential is sent in a body, not in a query.
    let peek = json!({ "limits": [{ "name": "core", "cost": 0, "subject": { "token": "abc" } }] });
    let peeked = || axum::http::Request::post("/v1/peek");
    let printed = send(caller, peeked(), peek.to_string()).await.ok();
    let seen = json!({ "limit": "core", "effect": "blocked", "expires": expected.2 });
    assert_eq!(printed["overrides"], json!([seen]));
    let printed = send(admin, peeked(), peek.to_string()).await.ok();
    let [one] = &**printed["overrides"].as_array().unwrap() else { panic!("{printed}") };
    assert_eq!((&one["limit"], &one["effect"]), (&seen["limit"], &seen["effect"]));
    assert_eq!(one["definition"]["reason"], expected.1);
    assert_eq!(
        (&one["definition"]["blocked"], &one["definition"]["limit"]),
        (&json!(true), &json!(null))
    );
}

#[tokio::test]
async fn a_peek_reports_who_is_not_counted_or_only_counted() {
    let world = administered();
    let peek = json!({ "limits": [{ "name": "core", "subject": { "token": "abc" } }] });
    for effect in ["unlimited", "counted"] {
        set(&world, json!({ "group": { "token": "abc" }, effect: true })).await;
        let printed = world.post("/v1/peek", peek.to_string()).await.ok();
        assert_eq!((&printed["admitted"], &printed["statuses"]), (&json!(true), &json!([])));
        assert_eq!(printed["overrides"][0]["effect"], effect);
    }
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused() {
    let world = administered();
    let rows = [
        (r#"{"subject":{"token":"a"}}"#, 400, "invalid-request"),
        (r#"{"blocked":true}"#, 400, "invalid-request"),
        (
            r#"{"subject":{"token":"a"},"group":{"token":"a"},"blocked":true}"#,
            400,
            "invalid-request",
        ),
        (r#"{"subject":{"token":"a"},"blocked":false}"#, 400, "invalid-request"),
        (r#"{"subject":{"token":"a"},"blocked":true,"unlimited":true}"#, 400, "invalid-request"),
        (r#"{"subject":{"token":"a"},"blocked":true,"expires_in":"1y"}"#, 400, "invalid-request"),
        (
            r#"{"subject":{"token":"a"},"blocked":true,"expires_in":"\u00e9"}"#,
            400,
            "invalid-request",
        ),
        (r#"{"subject":{"token":"a"},"blocked":true,"expires_in":""}"#, 400, "invalid-request"),
        (r#"{"subject":{"token":"a"},"blocked":true,"expires_in":"+1s"}"#, 400, "invalid-request"),
        (r#"{"subject":{"token":"a"},"blocked":true,"forever":true}"#, 400, "invalid-request"),
        (r#"{"subject":{"token":"a"},"quota":5}"#, 422, "invalid-override"),
        (r#"{"limit":"core","subject":{"token":"a"},"quota":0}"#, 422, "invalid-override"),
        (r#"{"subject":{"token":"a"},"blocked":true,"burst":5}"#, 422, "invalid-override"),
        (
            r#"{"subject":{"token":"a"},"blocked":true,"expires_in":"367d"}"#,
            422,
            "invalid-override",
        ),
        (r#"{"subject":{"token":"a"},"blocked":true,"reason":""}"#, 422, "invalid-override"),
        (r#"{"subject":{},"blocked":true}"#, 422, "invalid-override"),
        (r#"{"group":{},"blocked":true}"#, 422, "invalid-override"),
        (
            r#"{"group":{"token":"a","address":"192.0.2.1"},"blocked":true}"#,
            422,
            "invalid-override",
        ),
        (r#"{"limit":"cores","subject":{"token":"a"},"blocked":true}"#, 422, "unknown-limit"),
        (r#"{"limit":"core","subject":{},"blocked":true}"#, 422, "invalid-subject"),
        (
            r#"{"limit":"core","subject":{"address":"192.0.2.1"},"blocked":true}"#,
            422,
            "invalid-subject",
        ),
        (r#"{"group":{"tokens":"a"},"blocked":true}"#, 422, "invalid-subject"),
        (r#"{"group":{"address":"192.0.2.1/8"},"blocked":true}"#, 422, "invalid-subject"),
        (r#"{"group":{"address":"2001:db8::/80"},"blocked":true}"#, 422, "invalid-subject"),
    ];
    for (text, status, problem) in rows {
        let mut body: Value = serde_json::from_str(text).unwrap();
        let members = body.as_object_mut().unwrap();
        members.entry("expires_in").or_insert(json!("1h"));
        members.entry("reason").or_insert(json!("a test"));
        let answered = world.put("/v1/overrides", body.to_string()).await;
        assert_eq!(answered.problem(status), problem, "{text}");
    }
    for query in ["subject=a", "limits=core"] {
        let answered = world.delete(&format!("/v1/overrides?{query}")).await;
        assert_eq!(answered.problem(400), "invalid-query", "{query}");
    }
    let both = world.delete("/v1/overrides?subject[token]=a&group[token]=a").await;
    assert_eq!(both.problem(422), "invalid-override");
    assert_eq!(World::new().get("/v1/overrides").await.problem(403), "forbidden");
    // A limit without subjects has one counter, which the limit's name alone selects.
    set(&world, json!({ "limit": "everybody", "subject": {}, "blocked": true })).await;
    assert_eq!(charge(&world, "abc").await["admitted"], true);
}

#[tokio::test]
async fn a_limit_is_switched_for_everybody() {
    let world = administered();
    for _ in 0..3 {
        charge(&world, "abc").await;
    }
    let switch = json!({ "limit": "core", "everybody": true, "counted": true });
    let answer = set(&world, switch).await;
    assert_eq!(
        (&answer["after"]["everybody"], &answer["after"]["counted"]),
        (&json!(true), &json!(true))
    );
    let admitted = charge(&world, "abc").await;
    assert_eq!(
        (&admitted["admitted"], &admitted["shadow"]["admitted"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(admitted["overrides"][0]["effect"], "counted");
    assert_eq!(admitted["statuses"], json!([]));
    let policy = world.get("/v1/policy").await.ok();
    let of = |name: &str| {
        let limits = policy["limits"].as_array().unwrap();
        limits.iter().find(|limit| limit["name"] == name).unwrap()["switch"].clone()
    };
    assert_eq!(of("core")["reason"], "a test");
    assert_eq!(of("search"), Value::Null);
    // An override of a group takes precedence over one of all subjects.
    set(&world, json!({ "group": { "token": "abc" }, "blocked": true })).await;
    assert_eq!(charge(&world, "abc").await["admitted"], false);
    assert_eq!(charge(&world, "other").await["admitted"], true);
    world.delete("/v1/overrides?group[token]=abc").await.ok();
    let removed = world.delete("/v1/overrides?limit=core&everybody=true").await.ok();
    assert_eq!(removed["before"]["counted"], true);
    assert_eq!(charge(&world, "abc").await["admitted"], false);
    // Switches all limits off.
    set(&world, json!({ "everybody": true, "unlimited": true })).await;
    let passed = charge(&world, "abc").await;
    assert_eq!((&passed["admitted"], &passed["statuses"]), (&json!(true), &json!([])));
}
