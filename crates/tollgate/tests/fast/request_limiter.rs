//! The builder, and the layer of the library's users.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use http::request::Parts;
use http::{Request, Response};
use tollgate::model::Policy;
use tollgate::store::Memory;
use tollgate::tower::Peer;
use tollgate::{Limiter, Quota, RateLimitLayer, RateLimiter, Rule};
use tower::{Layer, ServiceExt, service_fn};

#[derive(Clone)]
struct UserId(u64);

fn user(parts: &Parts) -> Option<String> {
    parts.extensions.get::<UserId>().map(|user| user.0.to_string())
}

fn peer(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 4711))
}

/// Sends a request through a new service of `layer`, which shares the layer's counters.
async fn status(layer: &RateLimitLayer, path: &str, prepare: impl Fn(&mut Request<()>)) -> u16 {
    let inner = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(())) });
    let mut request = Request::get(path).body(()).unwrap();
    prepare(&mut request);
    layer.layer(inner).oneshot(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn each_address_has_its_own_counter() {
    let layer = RateLimitLayer::by_ip(Quota::per_hour(1));
    let from = |last| {
        move |request: &mut Request<()>| {
            request.extensions_mut().insert(ConnectInfo(peer(last)));
        }
    };
    assert_eq!(status(&layer, "/", from(1)).await, 200);
    assert_eq!(status(&layer, "/", from(1)).await, 429);
    assert_eq!(status(&layer, "/", from(2)).await, 200);
}

#[tokio::test]
async fn a_layer_that_cannot_see_the_address_says_so_at_the_first_request() {
    let layer = RateLimitLayer::by_ip(Quota::per_hour(1));
    assert_eq!(status(&layer, "/", |_| ()).await, 500);
    let layer = layer.peer_from(|_| Some(peer(9)));
    assert_eq!(status(&layer, "/", |_| ()).await, 200);
    let everybody = RateLimiter::builder().limit("all", Quota::per_hour(1)).build().unwrap();
    assert_eq!(status(&RateLimitLayer::new(everybody), "/", |_| ()).await, 200);
}

/// Returns a policy with one limit for each `per`, which is charged for requests that match
/// `matches`.
fn policy(per: &str, matches: &str) -> Policy {
    let text = format!(
        "subjects:\n\
         \x20 user: {{ header: x-user }}\n\
         \x20 address: {{ client_address: {{}} }}\n\
         \x20 either: {{ first_of: [user, address] }}\n\
         \x20 text: {{ expression: \"'a' + source.address\" }}\n\
         limits: {{ a: {{ quota: 9, window: 1h, per: {per} }} }}\n\
         rules: [{{ match: {{ {matches} }}, limits: a }}]\n"
    );
    tollgate_policy::parse("policy.yaml", &text).unwrap().policy
}

/// The bug: only a limit that counts by the address itself needed the address. In the other cases,
/// all clients shared a counter, or a rule for a network never matched.
#[tokio::test]
async fn an_address_that_was_used_indirectly_was_not_required() {
    let status_without = async |per, matches| {
        let layer = RateLimitLayer::new(Limiter::new(policy(per, matches), Memory::default()));
        let from = |request: &mut Request<()>| {
            request.extensions_mut().insert(Peer(peer(1)));
        };
        assert_eq!(status(&layer, "/", from).await, 200, "{per}, {matches}");
        status(&layer, "/", |_| ()).await
    };
    let mut served = Vec::new();
    for (per, matches) in [
        ("address", "path: /**"),
        ("either", "path: /**"),
        ("text", "path: /**"),
        ("user", "network: 10.0.0.0/8"),
        ("user", "not: { network: 10.0.0.0/8 }"),
        ("user", "any: [{ path: / }, { network: 10.0.0.0/8 }]"),
        ("user", "has: address"),
        ("user", "lacks: either"),
        ("user", "when: \"source.address != '10.0.0.1'\""),
        ("user", "when: \"subject.either != 'user:a'\""),
    ] {
        if status_without(per, matches).await != 500 {
            served.push((per, matches));
        }
    }
    assert!(served.is_empty(), "served without an address: {served:?}");
    assert_eq!(status_without("user", "path: /**").await, 200);
}

/// The bug: whether the address is required was decided once, and not again for the next policy.
#[tokio::test]
async fn a_new_policy_that_counts_by_address_did_not_require_the_address() {
    let policy = |per| policy(per, "path: /**");
    let layer = RateLimitLayer::new(Limiter::new(policy("user"), Memory::default()));
    for (per, expected) in [("user", 200), ("address", 500), ("user", 200)] {
        layer.limiter().limiter().replace_policy(policy(per).into());
        assert_eq!(status(&layer, "/", |_| ()).await, expected, "{per}");
    }
}

#[tokio::test]
async fn a_subject_comes_from_the_extensions_and_never_from_a_header() {
    let layer = RateLimitLayer::by_key(Quota::per_hour(1), user);
    let as_user = |id: u64| {
        move |request: &mut Request<()>| {
            request.headers_mut().insert("key", id.to_string().parse().unwrap());
            request.extensions_mut().insert(UserId(id));
        }
    };
    let anonymous = |request: &mut Request<()>| {
        request.headers_mut().insert("key", "1".parse().unwrap());
    };
    assert_eq!(status(&layer, "/", as_user(1)).await, 200);
    assert_eq!(status(&layer, "/", as_user(1)).await, 429);
    assert_eq!(status(&layer, "/", anonymous).await, 200);
    assert_eq!(status(&layer, "/", anonymous).await, 429);
    assert_eq!(status(&layer, "/", as_user(2)).await, 200);
}

#[tokio::test]
async fn the_first_rule_that_matches_decides_and_others_charge_every_limit() {
    let limiter = RateLimiter::builder()
        .subject("user", user)
        .limit("burst", Quota::per_hour(10).fixed_window().per("user"))
        .limit("hourly", Quota::per_hour(3).fixed_window().per(["user", "ip"]))
        .rule(Rule::path("/health").exempt())
        .rule(Rule::path("/search/**").method("get").limits(["burst"]).cost(4))
        .build()
        .unwrap();
    let layer = RateLimitLayer::new(limiter);
    let prepare = |request: &mut Request<()>| {
        request.extensions_mut().insert(Peer(peer(1)));
        request.extensions_mut().insert(UserId(1));
    };
    for (path, expected) in [
        ("/search/a", 200),
        ("/search/b", 200),
        ("/search/c", 429),
        ("/", 200),
        ("/", 200),
        ("/", 429),
        ("/health", 200),
    ] {
        assert_eq!(status(&layer, path, prepare).await, expected, "{path}");
    }
}

#[tokio::test]
async fn only_trusted_proxies_report_the_address() {
    let builder = || RateLimiter::builder().limit("ip", Quota::per_hour(1).per("ip"));
    for (limiter, second) in [
        (builder().build().unwrap(), 429),
        (builder().trusted_proxy("192.0.2.0/24").build().unwrap(), 200),
    ] {
        let layer = RateLimitLayer::new(limiter);
        let forwarded = |from: &'static str| {
            move |request: &mut Request<()>| {
                request.extensions_mut().insert(Peer(peer(1)));
                request.headers_mut().insert("x-forwarded-for", from.parse().unwrap());
            }
        };
        assert_eq!(status(&layer, "/", forwarded("198.51.100.1")).await, 200);
        assert_eq!(status(&layer, "/", forwarded("198.51.100.2")).await, second);
    }
}

#[test]
fn every_mistake_of_a_builder_is_named_at_once() {
    let error = RateLimiter::builder()
        .header("user", "x-user")
        .subject("user", user)
        .limit("burst", Quota::per_second(0).per("usr"))
        .limit("burst", Quota::per_second(1).per(["ip", "ip"]))
        .limit("two words", Quota::per_second(1))
        .rule(Rule::path("search").limits(["brust"]))
        .rule(Rule::any().cost(0))
        .trusted_proxy("10.0.0.0/99")
        .build()
        .unwrap_err();
    let mistakes: Vec<_> = error.mistakes().collect();
    let expected = [
        "subject `user`: it is defined twice",
        "limit `burst`: there is no subject `usr`; the subjects are `user`, `user`, `ip`, `host`, \
         `method`, `route`",
        "limit `burst`: the quota must be at least 1",
        "limit `burst`: it is defined twice",
        "limit `burst`: the subject `ip` is named twice",
        "limit `two words`: the name \"two words\" must be 1 to 64 letters, digits, `_`, `-` or `.`",
        "rule 1: path `search`: a path pattern begins with `/`",
        "rule 1: there is no limit `brust`; the limits are `burst`, `burst`, `two words`",
        "rule 2: the cost 0 must be from 1 to 2^53 - 1",
        "trusted proxy `10.0.0.0/99`: the prefix is longer than the address",
    ];
    assert_eq!(mistakes, expected);
}
