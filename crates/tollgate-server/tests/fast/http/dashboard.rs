//! The dashboard's files, and the paths that only the dashboard uses.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use tollgate::store::Memory;
use tollgate_server::http::{HttpOptions, MAX_SIMULATION_BYTES, Simulate};
use tollgate_server::{Access, Dashboard};

use crate::http::world::World;

fn world(simulate: Option<Simulate>) -> World {
    let (admin, dashboard) = (Some(Access::Open), Dashboard::Enabled);
    World::over(
        Memory::default(),
        HttpOptions { admin, dashboard, simulate, ..HttpOptions::default() },
    )
}

#[tokio::test]
async fn each_file_says_what_a_browser_may_do_with_it() {
    let world = world(None);
    for (path, media_type) in [
        ("/dashboard/", "text/html; charset=utf-8"),
        ("/dashboard/style.css", "text/css; charset=utf-8"),
        ("/dashboard/icon.svg", "image/svg+xml"),
        ("/dashboard/js/main.js", "text/javascript; charset=utf-8"),
        ("/dashboard/js/views/subject.js", "text/javascript; charset=utf-8"),
    ] {
        let answered = world.get(path).await;
        assert_eq!(answered.status, 200, "{path}");
        assert!(!answered.bytes.is_empty(), "{path}");
        let policy = answered.headers["content-security-policy"].to_str().unwrap();
        for part in [
            "default-src 'none';",
            "script-src 'self';",
            "style-src 'self';",
            "connect-src 'self';",
            "frame-ancestors 'none';",
            "base-uri 'none';",
            "form-action 'none';",
            "require-trusted-types-for 'script';",
        ] {
            assert!(policy.contains(part), "{part} in {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("content-type", media_type),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answered.headers[name], value, "{path}");
        }
        assert!(!answered.headers.contains_key("access-control-allow-origin"));
        let head = Request::head(path).body(Body::empty()).unwrap();
        let head = world.call(head).await;
        assert!(head.status == 200 && head.bytes.is_empty(), "{path}");
        let post = world.post(path, "{}").await;
        assert_eq!(post.problem(405), "method-not-allowed");
        assert_eq!(post.headers["allow"], "GET");
    }
    assert_eq!(world.get("/dashboard").await.headers["location"], "dashboard/");
    assert_eq!(world.get("/dashboard/nothing").await.problem(404), "not-found");
    assert_eq!(World::new().get("/dashboard/").await.problem(404), "not-found");
}

#[tokio::test]
async fn the_policy_in_force_is_reported() {
    let printed = world(None).get("/v1/policy").await.ok();
    assert_eq!(printed["policy"], "v1");
    assert_eq!(printed["rules_apply"], "first_match");
    assert_eq!(
        printed["subjects"],
        json!([
            { "name": "token", "source": "credential", "secret": true },
            { "name": "address", "source": "client_address", "secret": false },
        ])
    );
    let limit = |name: &str| {
        let limits = printed["limits"].as_array().unwrap();
        limits.iter().find(|limit| limit["name"] == name).unwrap().clone()
    };
    assert_eq!(
        limit("search"),
        json!({
            "name": "search", "resource": "search", "algorithm": "fixed_window", "quota": 2,
            "window_ms": 60_000, "capacity": 2, "per": ["token", "address"], "visible": true,
            "revealed": false, "enforced_percent": 100,
        })
    );
    assert_eq!(limit("anonymous")["resource"], "core");
    let flight = limit("flight");
    assert_eq!(
        (&flight["algorithm"], &flight["window_ms"]),
        (&json!("concurrency"), &json!(10_000))
    );
    assert_eq!(
        printed["rules"][0],
        json!({
            "name": "search", "mode": "enforce", "charge": "on_arrival", "on_failure": "local",
            "match": { "paths": ["/search/**"], "has": ["token"] },
            "limits": [{ "name": "search", "cost": 1 }, { "name": "flight", "cost": 1 }],
        })
    );
}

#[tokio::test]
async fn a_log_is_handed_on_as_it_was_and_one_at_a_time() {
    let (begun, begins) = sync_channel(3);
    let (end, ends) = sync_channel::<()>(1);
    let ends = Mutex::new(ends);
    let world = Arc::new(world(Some(Simulate::new(move |log, policy| {
        begun.send(()).unwrap();
        ends.lock().unwrap().recv().unwrap();
        let log = log.map(|log| String::from_utf8_lossy(&log).into_owned());
        Ok(json!({ "log": log, "policy": policy }))
    }))));
    let other = Arc::clone(&world);
    let first = tokio::spawn(async move {
        other.post("/v1/simulate", r#"{"log":"PGI+YQo=","policy":"limits: {}"}"#).await
    });
    let begins = tokio::task::spawn_blocking(move || {
        begins.recv().unwrap();
        begins
    });
    let begins = begins.await.unwrap();
    let meanwhile = world.post("/v1/simulate", r#"{"log":""}"#).await;
    assert_eq!(meanwhile.problem(503), "busy");
    end.send(()).unwrap();
    assert_eq!(first.await.unwrap().ok(), json!({ "log": "<b>a\n", "policy": "limits: {}" }));
    end.send(()).unwrap();
    let next = world.post("/v1/simulate", r#"{"log":""}"#).await.ok();
    assert_eq!(next, json!({ "log": "", "policy": null }));
    end.send(()).unwrap();
    let own = world.post("/v1/simulate", r#"{"policy":"limits: {}"}"#).await.ok();
    assert_eq!(own, json!({ "log": null, "policy": "limits: {}" }), "the node's own requests");
    drop(begins);
}

#[tokio::test]
async fn a_log_that_cannot_be_used_is_refused_with_its_reason() {
    let world = world(Some(Simulate::new(|_, _| Err("cannot read the log".to_owned()))));
    let refused = world.post("/v1/simulate", r#"{"log":""}"#).await;
    assert_eq!(refused.problem(422), "not-simulated");
    assert_eq!(refused.json()["detail"], "cannot read the log");
    for (body, problem) in [
        (r#"{"log":"*"}"#, "invalid-request"),
        (r#"{"log":1}"#, "invalid-request"),
        (r#"{"log":null}"#, "invalid-request"),
        (r#"{"log":"","policy":null}"#, "invalid-request"),
        (r#"{"log":"","logs":""}"#, "invalid-request"),
        ("log", "invalid-json"),
    ] {
        assert_eq!(world.post("/v1/simulate", body).await.problem(400), problem, "{body}");
    }
    let large = vec![b' '; MAX_SIMULATION_BYTES + 1];
    assert_eq!(world.post("/v1/simulate", large).await.problem(413), "body-too-large");
    let text = Request::post("/v1/simulate").body(Body::from("{}")).unwrap();
    assert_eq!(world.call(text).await.problem(415), "unsupported-media-type");
    // An error releases the permit for the next simulation.
    assert_eq!(world.post("/v1/simulate", r#"{"log":""}"#).await.problem(422), "not-simulated");
}
