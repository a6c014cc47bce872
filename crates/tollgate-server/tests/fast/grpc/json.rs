//! The service in JSON.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tollgate::store::memory::Memory;
use tollgate::{Limiter, ManualClock};
use tollgate_server::grpc::json_route;
use tollgate_server::{Access, HttpOptions, Tokens};
use tower::ServiceExt;

use crate::grpc::world::{START, policy};

const POLICY: &str = "
limits: { two: { quota: 2, window: 1m, anchor: calendar } }
descriptors:
  - { domain: edge, tree: [{ key: a, limit: two }] }
";

fn router() -> axum::Router {
    let limiter = Limiter::new(policy(POLICY), Memory::default());
    json_route(Arc::new(limiter.with_clock(ManualClock::new(START))))
}

async fn post(router: &axum::Router, body: impl Into<Body>) -> (u16, Value) {
    let request = Request::post("/json").body(body.into()).unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[tokio::test]
async fn the_same_service_speaks_json() {
    let router = router();
    let body =
        r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "a"}], "hitsAddend": "2"}]}"#;
    let (status, answer) = post(&router, body).await;
    let expected = json!({
        "overallCode": "OK",
        "statuses": [{
            "code": "OK",
            "currentLimit": { "name": "two", "requestsPerUnit": 2, "unit": "MINUTE" },
            "durationUntilReset": "50s",
        }],
    });
    assert_eq!(status, 200);
    assert_eq!(answer["overallCode"], expected["overallCode"]);
    assert_eq!(answer["statuses"], expected["statuses"]);

    let snake =
        r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "a"}], "hits_addend": 1}]}"#;
    let (status, answer) = post(&router, snake).await;
    assert_eq!((status, &answer["overallCode"]), (429, &json!("OVER_LIMIT")));
    assert_eq!(answer["statuses"][0]["code"], json!("OVER_LIMIT"));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let router = router();
    for body in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        r#"{"domain": "edge"}"#,
        r#"{"domain": "edge", "descriptors": [{}]}"#,
        r#"{"domain": 1, "descriptors": [{"entries": [{"key": "a"}]}]}"#,
        r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "a"}]}], "more": 1}"#,
        r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "a"}]}], "hitsAddend": -1}"#,
        r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "a"}]}], "hitsAddend": 4294967296}"#,
        r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "a"}], "hitsAddend": "1e99"}]}"#,
        r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "a"}]}]} {}"#,
    ] {
        let (status, answer) = post(&router, body).await;
        assert_eq!((status, &answer["status"]), (400, &json!(400)), "{body}");
        assert!(!answer["detail"].as_str().unwrap().is_empty(), "{body}");
    }
    let (status, _) = post(&router, vec![b'{'; 64 * 1024 + 1]).await;
    assert_eq!(status, 413);
}

#[tokio::test]
async fn the_http_listener_has_it_for_who_shows_a_token() {
    let access = Access::Tokens(Tokens::parse("0123456789abcdef").unwrap());
    let limiter = Arc::new(Limiter::new(policy(POLICY), Memory::default()));
    let options = HttpOptions { access, ..HttpOptions::default() };
    let router = tollgate_server::http::router(limiter, options);
    let body = r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "a"}]}]}"#;
    assert_eq!(post(&router, body).await.0, 401);
    let requested = Request::post("/json").header("authorization", "Bearer 0123456789abcdef");
    let answer = router.oneshot(requested.body(Body::from(body)).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
}

/// A browser sends a body with a form's media type without a preflight request, from any page.
#[tokio::test]
async fn another_sites_page_counts_nothing() {
    let limiter = Arc::new(Limiter::new(policy(POLICY), Memory::default()));
    let router = tollgate_server::http::router(limiter, HttpOptions::default());
    let body = r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "a"}]}]}"#;
    for (name, value, status) in [
        ("origin", "http://evil.example", 403),
        ("origin", "null", 403),
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-origin", 200),
        ("origin", "http://node.example", 200),
    ] {
        let requested = Request::post("/json").header("host", "node.example").header(name, value);
        let requested =
            requested.header("content-type", "text/plain").body(Body::from(body)).unwrap();
        let answer = router.clone().oneshot(requested).await.unwrap();
        assert_eq!(answer.status(), status, "{name}: {value}");
    }
}
