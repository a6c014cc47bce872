//! Fields that `Connection` nominates: no decision uses a field that the upstream does not receive.

use std::sync::Arc;

use http::{HeaderMap, Request};
use parking_lot::Mutex;
use tollgate::{
    Limiter,
    model::{
        Algorithm, Cost, Limit, Millis, Policy,
        algo::{Anchor, FixedWindow},
        policy::{
            Dimension, LimitBinding, LimitRef, MatchMode, Network, RequestMatch, Rule,
            SubjectSource,
        },
    },
    store::Memory,
    tower::Layer,
};
use tollgate_proxy::{Forward, RequestBody};
use tower::{ServiceExt, util::service_fn};
use tower_layer::layer_fn;

use crate::{
    setup::{Proxy, exchange, settings, statuses},
    upstream::{Recorder, Seen},
};

/// Creates limits of a thousand requests an hour for each token, and of three requests for all
/// clients without a token.
fn limiter() -> Limiter<Memory> {
    let source = SubjectSource::Credential { header: "authorization".into() };
    let token = Dimension { name: "token".into(), source };
    let limit = |name, quota, per| {
        let window = FixedWindow::new(quota, Millis::from_secs(3600), Anchor::FirstRequest);
        let limit = Limit::new(name, Algorithm::FixedWindow(window.expect("a window")));
        LimitBinding { limit: Arc::new(limit.expect("a name")), per }
    };
    let used = |limit| vec![LimitRef { limit, cost: Cost::ONE }];
    let known = RequestMatch { has: vec![0], ..RequestMatch::default() };
    let rules = vec![
        Rule::new("known", known, used(0)),
        Rule::new("others", RequestMatch::default(), used(1)),
    ];
    let limits = vec![limit("core", 1_000, vec![0]), limit("anonymous", 3, Vec::new())];
    let policy = Policy::new(vec![token], limits, rules, MatchMode::FirstMatch);
    Limiter::new(policy.expect("a policy"), Memory::default())
}

#[tokio::test]
async fn a_token_that_connection_nominates_away_is_not_decided_on() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::layered(settings(upstream.address), Layer::new(limiter())).await;
    for (nth, status) in [200, 200, 200, 429, 429].into_iter().enumerate() {
        let request = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {nth}\r\n\
             Connection: close, Authorization\r\n\r\n"
        );
        assert_eq!(statuses(&exchange(proxy.address, request).await), [status], "{nth}");
    }
    let observed = upstream.take();
    assert_eq!(observed.len(), 3);
    assert!(
        !observed.iter().any(|observed| observed.headers.contains_key("authorization")),
        "{observed:?}"
    );
    let known = "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer 1\r\nConnection: close\r\n\r\n";
    assert_eq!(statuses(&exchange(proxy.address, known).await), [200]);
    assert_eq!(upstream.take_one().headers["authorization"], "Bearer 1");
}

/// Sends a request with `fields`. Returns the header fields that the layer saw, and the request
/// that the upstream received.
async fn decided_and_seen(fields: &str, trusted: &str) -> (HeaderMap, Seen) {
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n");
    decided_and_seen_of(&request, trusted).await
}

async fn decided_and_seen_of(request: &str, trusted: &str) -> (HeaderMap, Seen) {
    let decided = Arc::new(Mutex::new(HeaderMap::new()));
    let memory = Arc::clone(&decided);
    let layer = layer_fn(move |forward: Forward| {
        let memory = Arc::clone(&memory);
        service_fn(move |request: Request<RequestBody>| {
            *memory.lock() = request.headers().clone();
            let forward = forward.clone();
            forward.oneshot(request)
        })
    });
    let upstream = Recorder::start().await;
    let mut settings = settings(upstream.address);
    settings.trusted_proxies = vec![Network::parse(trusted).expect("a network")].into();
    let proxy = Proxy::layered(settings, layer).await;
    assert_eq!(statuses(&exchange(proxy.address, request).await), [200]);
    let decided = std::mem::take(&mut *decided.lock());
    (decided, upstream.take_one())
}

#[tokio::test]
async fn what_is_decided_on_is_what_the_upstream_gets() {
    for fields in [
        "",
        "X: 1\r\nCookie: a=b\r\n",
        "Connection: X, Y\r\nX: 1\r\nY: 2\r\nZ: 3\r\n",
        "Connection: x\r\nX: 1\r\nConnection: , Host , cookie\r\nX: 2\r\nCookie: a=b\r\n",
        "Connection: x, \u{e9}\r\nX: 1\r\n",
        "TE: trailers, gzip\r\nX: 1\r\n",
        "Upgrade: websocket\r\nConnection: upgrade, x\r\nX: 1\r\n",
        "Upgrade: h2c\r\nConnection: upgrade\r\nHTTP2-Settings: x\r\n",
        "Proxy-Authorization: Basic eA==\r\nProxy-Connection: close\r\nKeep-Alive: timeout=9\r\n",
    ] {
        let (decided, observed) = decided_and_seen(fields, "192.0.2.0/24").await;
        for name in decided.keys() {
            let (decided, observed) = (decided.get_all(name), observed.headers.get_all(name));
            assert!(
                decided.iter().eq(observed.iter()),
                "{name} of {fields:?}: {decided:?} {observed:?}"
            );
        }
    }
}

/// The bug: the proxy added the host of the upstream to a request without a host only after the
/// decision, so the policy saw no host.
#[tokio::test]
async fn a_host_that_the_proxy_added_was_not_decided_on() {
    for request in ["GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\n\r\n"] {
        let (decided, observed) = decided_and_seen_of(request, "192.0.2.0/24").await;
        assert_eq!(decided.get("host"), observed.headers.get("host"), "{request:?}");
        assert_eq!(decided.get("host").is_some_and(|host| host == "a"), request.contains("Host"));
    }
}

#[tokio::test]
async fn who_a_trusted_proxy_says_asks_is_not_nominated_away() {
    let fields = "Connection: X-Forwarded-For, Forwarded, X-Forwarded-Proto, X-Real-IP\r\n\
                  X-Forwarded-For: 198.51.100.1\r\nForwarded: for=198.51.100.1\r\n\
                  X-Forwarded-Proto: https\r\nX-Real-IP: 198.51.100.1\r\n";
    let (decided, observed) = decided_and_seen(fields, "127.0.0.0/8").await;
    assert_eq!(decided["x-forwarded-for"], "198.51.100.1");
    assert_eq!(decided["forwarded"], "for=198.51.100.1");
    assert_eq!(observed.headers["x-forwarded-for"], "198.51.100.1, 127.0.0.1");
    assert_eq!(observed.headers["x-forwarded-proto"], "https");
    assert_eq!(observed.headers["x-real-ip"], "198.51.100.1");
}
