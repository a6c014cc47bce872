//! The sub-requests of Traefik and Caddy as they send them, and forged ones.

use std::net::SocketAddr;

use tempfile::TempDir;

use crate::sub_requests::client::send;
use crate::sub_requests::laws::number;
use crate::sub_requests::site::limit_of;
use crate::sub_requests::tollgate::Tollgate;
use crate::support::world::{Answer, policy};

/// The header fields that Traefik's forwardAuth sends without trustForwardHeader: the client's
/// fields, of which Traefik overwrites some.
const TRAEFIK: &[&str] = &[
    "User-Agent: curl/7.88.1",
    "Accept: */*",
    "Authorization: Bearer abc",
    "X-Forwarded-For: 192.0.2.7",
    "X-Forwarded-Host: api.example.com",
    "X-Forwarded-Method: GET",
    "X-Forwarded-Port: 80",
    "X-Forwarded-Proto: http",
    "X-Forwarded-Server: edge-1",
    "X-Forwarded-Uri: /user?page=2",
    "X-Real-Ip: 192.0.2.7",
    "Accept-Encoding: gzip",
];

/// The header fields that Caddy's forward_auth sends.
const CADDY: &[&str] = &[
    "User-Agent: curl/7.88.1",
    "Accept: */*",
    "Authorization: Bearer abc",
    "Via: 1.1 Caddy",
    "X-Forwarded-For: 192.0.2.7",
    "X-Forwarded-Host: api.example.com",
    "X-Forwarded-Method: GET",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Uri: /user?page=2",
    "Accept-Encoding: gzip",
];

fn tollgate(policy: &str) -> Tollgate {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("policy.yaml");
    std::fs::write(&path, policy).unwrap();
    Tollgate::start(&path)
}

fn forward(at: SocketAddr, method: &str, fields: &[&str]) -> Answer {
    send(at, method, "/v1/authorize", fields, "")
}

#[test]
fn who_may_pass_is_reported_so_and_who_may_not_gets_a_whole_answer() {
    for proxy in [TRAEFIK, CADDY] {
        let node = tollgate(&limit_of(2));
        for used in [1, 2] {
            let answer = forward(node.address, "GET", proxy);
            assert_eq!((answer.status, &*answer.body), (200, ""), "{answer:?}");
            assert_eq!(number(&answer, "x-ratelimit-used"), used);
            assert_eq!(answer.field("ratelimit-policy"), r#""few";q=2;w=3600"#);
        }
        let refused = forward(node.address, "GET", proxy);
        assert_eq!(refused.status, 429);
        assert_eq!(refused.field("tollgate-receipt"), "", "nothing was charged");
        assert!((1..=3_600).contains(&number(&refused, "retry-after")));
        assert_eq!(refused.field("content-type"), "application/json; charset=utf-8");
        let problem: serde_json::Value = serde_json::from_str(&refused.body).unwrap();
        assert_eq!(problem["violated-policies"], serde_json::json!(["few"]));
        let other = [proxy, &["x-other: 1"]].concat().join("\n").replace(".7", ".8");
        let other: Vec<_> = other.lines().collect();
        assert_eq!(forward(node.address, "GET", &other).status, 200, "another client");
    }
}

#[test]
fn the_method_of_the_sub_request_says_nothing() {
    let node = tollgate(&limit_of(3));
    for (used, method) in (1..).zip(["GET", "POST", "HEAD"]) {
        let answer = forward(node.address, method, CADDY);
        assert_eq!((answer.status, number(&answer, "x-ratelimit-used")), (200, used), "{method}");
    }
    assert_eq!(forward(node.address, "DELETE", CADDY).status, 405);
}

#[test]
fn a_receipt_gives_back_once() {
    let node = tollgate(&limit_of(1));
    let charged = forward(node.address, "GET", TRAEFIK);
    assert_eq!(forward(node.address, "GET", TRAEFIK).status, 429);
    let body = format!(r#"{{"receipt":"{}"}}"#, charged.field("tollgate-receipt"));
    for _ in 0..2 {
        let json = ["content-type: application/json"];
        assert_eq!(send(node.address, "POST", "/v1/refund", &json, &body).status, 200);
    }
    let statuses = [(); 2].map(|()| forward(node.address, "GET", TRAEFIK).status);
    assert_eq!(statuses, [200, 429]);
}

/// A proxy does not report the end of the original request, so a permit would be held until it
/// expires.
#[test]
fn leases_are_not_taken() {
    let text = "subjects: { address: { client_address: {} } }\n\
                limits:\n  \
                  few: { quota: 3, window: 1h, per: address }\n  \
                  one: { algorithm: concurrency, quota: 1, per: address }\n\
                rules: [ { name: all, limits: [few, one] } ]\n";
    let node = tollgate(text);
    let statuses = [(); 4].map(|()| forward(node.address, "GET", TRAEFIK).status);
    assert_eq!(statuses, [200, 200, 200, 429]);
}

#[test]
fn what_is_not_clear_is_refused_and_costs_nothing() {
    let node = tollgate(&limit_of(1));
    let unclear: [&[&str]; 7] = [
        &[],
        &["X-Forwarded-Method: GET", "X-Forwarded-Uri: /"],
        &["X-Forwarded-Method: GET", "X-Forwarded-For: 192.0.2.7"],
        &["X-Original-URI: /", "X-Forwarded-For: 192.0.2.7"],
        &["X-Forwarded-Method: GET", "X-Original-URI: /", "X-Forwarded-For: 192.0.2.7"],
        &["X-Original-Method: GET", "X-Original-URI: user", "X-Forwarded-For: 192.0.2.7"],
        &["X-Original-Method: GET", "X-Original-URI: /", "X-Forwarded-For: unix:"],
    ];
    let forged = [
        [TRAEFIK, &["X-Forwarded-Uri: /free"]].concat(),
        [TRAEFIK, &["X-Original-Method: GET", "X-Original-URI: /free"]].concat(),
        [CADDY, &["X-Forwarded-Host: other"]].concat(),
    ];
    for fields in unclear.into_iter().chain(forged.iter().map(Vec::as_slice)) {
        let answer = forward(node.address, "GET", fields);
        assert_eq!(answer.status, 400, "{fields:?}");
        assert_eq!(answer.field("content-type"), "application/problem+json");
        assert!(answer.body.to_lowercase().contains("x-"), "it names the field: {answer:?}");
    }
    assert_eq!(forward(node.address, "GET", TRAEFIK).status, 200);
}

/// Returns how many of 200 guessed passwords reach the service at `uri`.
fn passed(method: &str, uri: &str) -> usize {
    let node = Tollgate::start(&policy("sign-in.yaml"));
    let (method, uri) = (format!("X-Original-Method: {method}"), format!("X-Original-URI: {uri}"));
    let fields = [&*method, &uri, "X-Forwarded-For: 192.0.2.7", "X-Account: alice"];
    (0..200).filter(|_| forward(node.address, "GET", &fields).status == 200).count()
}

#[test]
fn no_spelling_of_login_lets_more_than_five_of_two_hundred_guesses_pass() {
    for path in ["/login", "/LOGIN", "/login;x", "//login", "/%6cogin?a=b"] {
        assert_eq!(passed("POST", path), 5, "{path}");
    }
    assert_eq!(passed("post", "/login"), 5);
    let many = format!("/{}{}login", "a/".repeat(257), "../".repeat(257));
    for path in ["/x%2f..%2flogin", "/x\\..\\login", "/login%5c", "/login%00", "/%2e/login", &many]
    {
        assert_eq!(passed("POST", path), 0, "{path}");
    }
}

#[test]
fn a_request_that_can_be_read_in_two_ways_is_a_400() {
    let node = tollgate(
        "subjects: { token: { header: authorization } }\n\
                         limits: { few: { quota: 3, window: 1h, per: token } }\n\
                         rules: [ { name: all, match: { has: token }, limits: few } ]\n",
    );
    let encoded = TRAEFIK.join("\n").replace("/user?", "/x%2fuser?");
    let encoded: Vec<_> = encoded.lines().collect();
    let answer = forward(node.address, "GET", &encoded);
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("encoded slash"), "{answer:?}");
    let twice = [TRAEFIK, &["Authorization: Bearer def"]].concat();
    assert_eq!(forward(node.address, "GET", &twice).status, 400);
    let answer = forward(node.address, "GET", TRAEFIK);
    assert_eq!((answer.status, &*answer.body), (200, ""));
    assert!(answer.field("ratelimit").contains("r=2"), "nothing was charged: {answer:?}");
}

/// Caddy answers a request for another host than that of the site's address with an empty 200, and
/// listens on every interface unless `bind` names one.
#[test]
fn caddy_serves_every_host_on_loopback() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/caddy/Caddyfile");
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some(":8080 {"));
    assert_eq!(lines.next(), Some("bind 127.0.0.1"));
}
