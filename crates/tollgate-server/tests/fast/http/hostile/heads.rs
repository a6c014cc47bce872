//! Request heads, sizes and paths.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::http::world::World;

const BODY: &str = r#"{"limits":[{"name":"everybody"}]}"#;

/// Method, path, header fields, body; status and problem.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)], u16, &'static str);

const JSON: (&str, &str) = ("content-type", "application/json");
const KEY: &str = "idempotency-key";
const LONG_KEY: &str = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";

const ROWS: [Row; 30] = [
    ("POST", "/v1/check", &[], 415, "unsupported-media-type"),
    ("POST", "/v1/check", &[("content-type", "")], 415, "unsupported-media-type"),
    ("POST", "/v1/check", &[("content-type", "text/plain")], 415, "unsupported-media-type"),
    ("POST", "/v1/check", &[("content-type", "text/json")], 415, "unsupported-media-type"),
    ("POST", "/v1/check", &[("content-type", "application/xml")], 415, "unsupported-media-type"),
    ("POST", "/v1/check", &[("content-type", "application/jsonx")], 415, "unsupported-media-type"),
    (
        "POST",
        "/v1/check",
        &[("content-type", "multipart/form-data")],
        415,
        "unsupported-media-type",
    ),
    (
        "POST",
        "/v1/check",
        &[("content-type", "application/x-www-form-urlencoded")],
        415,
        "unsupported-media-type",
    ),
    ("POST", "/v1/check/batch", &[], 415, "unsupported-media-type"),
    ("POST", "/v1/peek", &[], 415, "unsupported-media-type"),
    ("POST", "/v1/refund", &[], 415, "unsupported-media-type"),
    ("POST", "/v1/check", &[JSON, (KEY, "")], 400, "invalid-idempotency-key"),
    ("POST", "/v1/check", &[JSON, (KEY, "a b")], 400, "invalid-idempotency-key"),
    ("POST", "/v1/check", &[JSON, (KEY, "a\tb")], 400, "invalid-idempotency-key"),
    ("POST", "/v1/check", &[JSON, (KEY, "é")], 400, "invalid-idempotency-key"),
    ("POST", "/v1/check", &[JSON, (KEY, LONG_KEY)], 400, "invalid-idempotency-key"),
    ("POST", "/v1/check", &[JSON, (KEY, "a"), (KEY, "a")], 400, "invalid-idempotency-key"),
    ("POST", "/v1/check", &[JSON, ("content-length", "65537")], 413, "body-too-large"),
    (
        "POST",
        "/v1/check",
        &[JSON, ("content-length", "18446744073709551615")],
        413,
        "body-too-large",
    ),
    ("GET", "/v1/check", &[JSON], 405, "method-not-allowed"),
    ("PUT", "/v1/check", &[JSON], 405, "method-not-allowed"),
    ("DELETE", "/v1/check", &[JSON], 405, "method-not-allowed"),
    ("TRACE", "/v1/check", &[JSON], 405, "method-not-allowed"),
    ("POST", "/healthz", &[JSON], 405, "method-not-allowed"),
    ("POST", "/", &[JSON], 404, "not-found"),
    ("POST", "/v1/check/", &[JSON], 404, "not-found"),
    ("POST", "/v1//check", &[JSON], 404, "not-found"),
    ("POST", "/V1/check", &[JSON], 404, "not-found"),
    ("POST", "/v1/%63heck", &[JSON], 404, "not-found"),
    ("POST", "/v1/../healthz", &[JSON], 404, "not-found"),
];

#[tokio::test]
async fn heads_and_paths() {
    let world = World::new();
    for (method, path, headers, status, problem) in ROWS {
        let request = Request::builder().method(method).uri(path);
        let request = headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, value.as_bytes()));
        let answered = world.call(request.body(Body::from(BODY)).unwrap()).await;
        assert_eq!(answered.problem(status), problem, "{method} {path} {headers:?}");
    }
    assert_eq!(world.post("/v1/peek", BODY).await.ok()["statuses"][0]["used"], 0);
}

/// Bodies at the largest size are accepted, and one more byte is refused.
#[tokio::test]
async fn bounds() {
    let world = World::new();
    let charge = json!({ "name": "everybody", "cost": 0 });
    let check = json!({ "limits": [charge] });
    let limits = |count| json!({ "limits": vec![charge.clone(); count] }).to_string();
    world.post("/v1/check", limits(32)).await.ok();
    assert_eq!(world.post("/v1/check", limits(33)).await.problem(400), "invalid-request");
    let checks = |count| json!({ "checks": vec![check.clone(); count] }).to_string();
    world.post("/v1/check/batch", checks(64)).await.ok();
    for count in [0, 65] {
        assert_eq!(
            world.post("/v1/check/batch", checks(count)).await.problem(400),
            "invalid-request"
        );
    }
    let subjects = |count: usize| {
        let subject: serde_json::Map<_, _> =
            (0..count).map(|n| (n.to_string(), json!("a"))).collect();
        json!({ "limits": [{ "name": "core", "subject": subject }] }).to_string()
    };
    assert_eq!(world.post("/v1/check", subjects(64)).await.problem(422), "invalid-subject");
    assert_eq!(world.post("/v1/check", subjects(65)).await.problem(400), "invalid-request");
    let fields = |count: usize| {
        let fields: serde_json::Map<_, _> =
            (0..count).map(|n| (format!("f{n}"), json!("a"))).collect();
        json!({ "request": { "method": "GET", "path": "/", "headers": fields } }).to_string()
    };
    world.post("/v1/check", fields(100)).await.ok();
    assert_eq!(world.post("/v1/check", fields(101)).await.problem(400), "invalid-request");
    let sized = |bytes: usize| BODY.to_owned() + &" ".repeat(bytes - BODY.len());
    world.post("/v1/check", sized(65_536)).await.ok();
    assert_eq!(world.post("/v1/check", sized(65_537)).await.problem(413), "body-too-large");
}

/// A document that is nested as deep as its bytes allow is refused without a stack overflow.
#[tokio::test]
async fn depth() {
    let world = World::new();
    for (open, close) in [("[", "]"), (r#"{"limits":"#, "}"), (r#"{"a":["#, "]}")] {
        for depth in [10, 126, 127, 128, 129, 5_000] {
            let deep = open.repeat(depth) + &close.repeat(depth);
            let problem = world.post("/v1/check", deep).await.problem(400);
            assert!(problem.starts_with("invalid-"), "{open} {depth}: {problem}");
        }
    }
}
