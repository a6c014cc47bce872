//! Sub-requests of proxies, and attempts of clients to forge them.

use axum::http::HeaderName;
use tollgate::model::policy::{Forwarding, Network};

use super::*;

fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&str, &str)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_bytes(value.as_bytes()).unwrap())
    };
    let mut fields = HeaderMap::new();
    for (name, value) in lines.iter().map(line) {
        fields.append(name, value);
    }
    fields
}

/// The sub-requests of four proxies for `GET /search/code?q=x` from 192.0.2.7.
const PROXIES: [(&str, &[(&str, &str)]); 4] = [
    (
        "nginx, with deploy/nginx",
        &[
            ("host", "tollgate"),
            ("x-original-method", "GET"),
            ("x-original-uri", "/search/code?q=x"),
            ("x-forwarded-host", "api.example.com"),
            ("x-forwarded-for", "192.0.2.7"),
            ("user-agent", "curl/7.88.1"),
            ("accept", "*/*"),
            ("authorization", "Bearer abc"),
        ],
    ),
    (
        "HAProxy, with deploy/haproxy",
        &[
            ("x-forwarded-method", "GET"),
            ("x-forwarded-uri", "/search/code?q=x"),
            ("x-forwarded-host", "api.example.com"),
            ("x-forwarded-for", "192.0.2.7"),
            ("authorization", "Bearer abc"),
            ("host", "127.0.0.1:8081"),
        ],
    ),
    (
        "Traefik, with trustForwardHeader false",
        &[
            ("host", "127.0.0.1:8081"),
            ("user-agent", "curl/7.88.1"),
            ("accept", "*/*"),
            ("authorization", "Bearer abc"),
            ("x-forwarded-for", "192.0.2.7"),
            ("x-forwarded-host", "api.example.com"),
            ("x-forwarded-method", "GET"),
            ("x-forwarded-port", "80"),
            ("x-forwarded-proto", "http"),
            ("x-forwarded-server", "edge-1"),
            ("x-forwarded-uri", "/search/code?q=x"),
            ("x-real-ip", "192.0.2.7"),
            ("accept-encoding", "gzip"),
        ],
    ),
    (
        "Caddy, forward_auth",
        &[
            ("host", "api.example.com"),
            ("user-agent", "curl/7.88.1"),
            ("accept", "*/*"),
            ("authorization", "Bearer abc"),
            ("via", "1.1 Caddy"),
            ("x-forwarded-for", "192.0.2.7"),
            ("x-forwarded-host", "api.example.com"),
            ("x-forwarded-method", "GET"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-uri", "/search/code?q=x"),
            ("accept-encoding", "gzip"),
        ],
    ),
];

#[test]
fn every_proxys_sub_request_reports_the_same_request() {
    for (proxy, lines) in PROXIES {
        let fields = fields(lines);
        let held = SubRequest::read(&fields).unwrap_or_else(|error| panic!("{proxy}: {error}"));
        let facts = held.facts();
        assert_eq!((facts.method, facts.path), ("GET", "/search/code"), "{proxy}");
        assert_eq!(facts.host, Some("api.example.com"), "{proxy}");
        assert_eq!(facts.peer, Some("192.0.2.7".parse().unwrap()), "{proxy}");
        assert_eq!(facts.headers.value("authorization", 0), Some(&b"Bearer abc"[..]), "{proxy}");
        assert_eq!(facts.headers.value("authorization", 1), None, "{proxy}");
    }
}

#[test]
fn a_clients_own_fields_never_stand_for_those_of_its_proxy() {
    for (proxy, lines) in PROXIES {
        for forged in [
            ("x-forwarded-method", "PUT"),
            ("x-forwarded-uri", "/free"),
            ("x-original-method", "PUT"),
            ("x-original-uri", "/free"),
        ] {
            // The client's forged field comes before or after the proxy's fields.
            for lines in [[&[forged][..], lines].concat(), [lines, &[forged]].concat()] {
                let fields = fields(&lines);
                assert!(SubRequest::read(&fields).is_err(), "{proxy}: {forged:?}");
            }
        }
        let other_pairs = [
            [("x-forwarded-method", "GET"), ("x-forwarded-uri", "/free")],
            [("x-original-method", "GET"), ("x-original-uri", "/free")],
        ];
        for pair in other_pairs {
            let fields = fields(&[lines, &pair[..]].concat());
            assert!(SubRequest::read(&fields).is_err(), "{proxy}: {pair:?}");
        }
    }
}

#[test]
fn two_pairs_that_agree_are_one() {
    let pairs = |forwarded, original| {
        fields(&[
            ("x-forwarded-method", "GET"),
            ("x-forwarded-uri", forwarded),
            ("x-original-method", "GET"),
            ("x-original-uri", original),
            ("x-forwarded-for", "192.0.2.7"),
        ])
    };
    let agreeing = pairs("/a?b", "/a?b");
    let request = SubRequest::read(&agreeing).unwrap();
    assert_eq!((request.facts().path, request.facts().query), ("/a", Some("b")));
    // The queries differ, and rules and subjects may depend on the query.
    for original in ["/a", "/a?c", "/a?b&b"] {
        let differing = pairs("/a?b", original);
        assert_eq!(SubRequest::read(&differing).unwrap_err(), SubRequestError::Contradiction);
    }
}

/// An address that the client wrote before the proxy's entry counts only if the policy trusts the
/// hop that wrote the entry.
#[test]
fn the_client_is_whom_trusted_proxies_name() {
    let trusted = vec![Network::parse("10.0.0.0/8").unwrap()];
    let forwarding = Forwarding { trusted, ..Forwarding::default() };
    let clients: [(&[&str], &str); 7] = [
        (&["192.0.2.7"], "192.0.2.7"),
        (&["203.0.113.9, 192.0.2.7"], "192.0.2.7"),
        (&["203.0.113.9", "192.0.2.7"], "192.0.2.7"),
        (&["203.0.113.9, 10.1.1.1"], "203.0.113.9"),
        (&["203.0.113.9", "10.1.1.1"], "203.0.113.9"),
        (&["198.51.100.1, 203.0.113.9, 10.2.2.2, 10.1.1.1"], "203.0.113.9"),
        (&["nonsense, 10.1.1.1"], "10.1.1.1"),
    ];
    for (written, client) in clients {
        let lines: Vec<_> = written.iter().map(|line| ("x-forwarded-for", *line)).collect();
        let fields = fields(
            &[&lines[..], &[("x-original-method", "GET"), ("x-original-uri", "/")]].concat(),
        );
        let held = SubRequest::read(&fields).unwrap();
        assert_eq!(forwarding.client(&held.facts()), Some(client.parse().unwrap()), "{written:?}");
    }
}

/// Reads a sub-request in which one field is replaced or removed.
fn with(name: &str, value: Option<&str>) -> Result<(), SubRequestError> {
    let mut fields = fields(&[
        ("x-forwarded-method", "GET"),
        ("x-forwarded-uri", "/"),
        ("x-forwarded-host", "example.com"),
        ("x-forwarded-for", "192.0.2.7"),
    ]);
    let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
    match value {
        Some(value) => {
            fields.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        None => {
            fields.remove(name);
        }
    }
    SubRequest::read(&fields).map(|_| ())
}

#[test]
fn each_field_is_read_strictly() {
    let long = "x".repeat(300);
    let method: &[&str] = &["", "GE T", "GET,GET", "GET\t", "G\u{c9}T", "(GET)", &long];
    let uri: &[&str] = &[
        "",
        "search",
        "http://a/",
        "//a b",
        "/a b",
        "/\tb",
        "?q=1",
        "#",
        "**",
        "a:80",
        "/a\u{a0}b",
        "/a\u{2028}b",
    ];
    let host: &[&str] = &["", "a, b", "a b", "\u{e9}.example", &long];
    let client: &[&str] = &[
        "",
        ",",
        "192.0.2.7,",
        "unix:",
        "unknown",
        "_hidden",
        "192.0.2.256",
        "192.0.2",
        "192.0.2.7:",
        "192.0.2.7:65536",
        "192.0.2.7:x",
        "0x7f.1",
        "0300.0.2.1",
        "[2001:db8::1",
        "2001:db8::1]",
        "[192.0.2.7]",
        "[2001:db8::1]:",
        "2001:db8::g",
        "192.0.2.7;",
        "192.0.2.7 198.51.100.1",
        "\"192.0.2.7\"",
        "for=192.0.2.7",
        "fe80::1%eth0",
    ];
    for (name, values) in [
        ("x-forwarded-method", method),
        ("x-forwarded-uri", uri),
        ("x-forwarded-host", host),
        ("x-forwarded-for", client),
    ] {
        for value in values {
            let error = with(name, Some(value)).expect_err(value);
            assert!(
                matches!(error, SubRequestError::Invalid(named, _) if named == name),
                "{value:?}"
            );
        }
    }
    assert_eq!(with("x-forwarded-for", None), Err(SubRequestError::Missing("x-forwarded-for")));
    assert_eq!(with("x-forwarded-uri", None), Err(SubRequestError::Missing("x-forwarded-uri")));
    assert_eq!(
        with("x-forwarded-method", None),
        Err(SubRequestError::Missing("x-forwarded-method"))
    );
    assert_eq!(with("x-forwarded-host", None), Ok(()));
}

#[test]
fn what_is_unusual_and_right_is_read() {
    for (name, value) in [
        ("x-forwarded-method", "PROPFIND"),
        ("x-forwarded-method", "get"),
        ("x-forwarded-uri", "*"),
        ("x-forwarded-uri", "//a/../b"),
        ("x-forwarded-uri", "/%00?%zz"),
        ("x-forwarded-uri", "/caf\u{e9}"),
        ("x-forwarded-host", "example.com:8080"),
        ("x-forwarded-host", "[2001:db8::1]:8080"),
        ("x-forwarded-for", "2001:db8::1"),
        ("x-forwarded-for", "[2001:db8::1]"),
        ("x-forwarded-for", "[2001:db8::1]:80"),
        ("x-forwarded-for", "192.0.2.7:80"),
        ("x-forwarded-for", " 192.0.2.7 "),
        ("x-forwarded-for", ",, 192.0.2.7"),
        ("x-forwarded-for", "::ffff:192.0.2.7"),
    ] {
        assert_eq!(with(name, Some(value)), Ok(()), "{name}: {value}");
    }
}
