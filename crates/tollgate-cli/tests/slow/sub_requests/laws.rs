//! Properties that hold for every proxy.

use std::thread;

use crate::sub_requests::client;
use crate::sub_requests::edge::{Changes, Kind};
use crate::sub_requests::site::{Site, limit_of};
use crate::support::world::{Answer, policy};

pub(crate) fn two_hundred_at_once_and_a_hundred_pass(kind: Kind) {
    let site = Site::with_policy(kind, &limit_of(100), &[]);
    let address = site.edge.address;
    let clients = (0..200).map(|_| thread::spawn(move || client::get(address, "/user", &[])));
    let clients: Vec<_> = clients.collect();
    let answers: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    let (passed, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((passed.len(), site.api.requested()), (100, 100), "{answers:?}");
    assert!(refused.iter().all(|answer| answer.status == 429), "{answers:?}");
    let mut left: Vec<u64> =
        passed.iter().map(|answer| number(answer, "x-ratelimit-remaining")).collect();
    left.sort_unstable();
    assert_eq!(left, Vec::from_iter(0..100), "every answer tells its own standing");
}

pub(crate) fn clients_see_their_status(kind: Kind) {
    let site = Site::start(kind, &policy("github.yaml"), &[]);
    let first = site.get("/user", &[]);
    let reset = first.field("x-ratelimit-reset").to_owned();
    for used in 2..=60 {
        let answer = site.get("/user", &[]);
        assert_eq!((answer.status, number(&answer, "x-ratelimit-used")), (200, used));
        assert_eq!(answer.field("x-ratelimit-reset"), reset);
        assert!(answer.field("retry-after").is_empty(), "{answer:?}");
    }
    let refused = site.get("/user", &[]);
    assert_eq!((refused.status, site.api.requested()), (429, 60));
    for answer in [&first, &refused] {
        assert_eq!(answer.field("x-ratelimit-limit"), "60");
        assert_eq!(answer.field("x-ratelimit-resource"), "core");
        assert_eq!(answer.field("x-ratelimit-reset"), reset);
        assert_eq!(answer.field("ratelimit-policy"), r#""anonymous";q=60;w=3600"#);
    }
    assert!(refused.field("ratelimit").starts_with(r#""anonymous";r=0;t="#), "{refused:?}");
    assert!((1..=3_600).contains(&number(&refused, "retry-after")));
    let media_type = match kind {
        // nginx drops the body of the sub-request's response, and writes its own.
        Kind::Nginx => "application/problem+json; charset=utf-8",
        Kind::HaProxy => "application/json; charset=utf-8",
    };
    assert_eq!(refused.field("content-type"), media_type);
    let problem: serde_json::Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!(problem["status"], 429);
    assert!(problem["type"].as_str().unwrap().ends_with("#quota-exceeded"), "{problem}");
}

/// The policy's rules see the method, the path and the header fields of the original request. Its
/// body is sent only to the service.
pub(crate) fn rules_see_the_request_that_is_held(kind: Kind) {
    let site = Site::start(kind, &policy("github.yaml"), &[]);
    let token = "authorization: Bearer one";
    let response = |answer: &Answer| {
        let resource = answer.field("x-ratelimit-resource").to_owned();
        (answer.status, resource, number(answer, "x-ratelimit-used"))
    };
    assert_eq!(response(&site.get("/user", &[token])), (200, "core".into(), 1));
    assert_eq!(response(&site.get("/search/issues?q=a%20b", &[token])), (200, "search".into(), 1));
    let path = "/repos/octocat/hello/issues";
    let opened = client::send(site.edge.address, "POST", path, &[token], r#"{"title":"hello"}"#);
    assert_eq!(response(&opened), (201, "core".into(), 2));
    assert_eq!(
        response(&site.get("/user", &["authorization: Bearer two"])),
        (200, "core".into(), 1)
    );
    assert_eq!(response(&site.get("/user", &[])), (200, "core".into(), 1), "a stranger by address");
}

pub(crate) fn nobody_forges_a_request_an_address_or_a_token(kind: Kind) {
    let text = "subjects: { address: { client_address: {} } }\n\
                limits: { few: { quota: 12, window: 1h, per: address } }\n\
                rules:\n\
                - { name: free, match: { path: /free }, limits: [] }\n\
                - { name: all, limits: few }\n\
                answers: { headers: github }\n";
    let site = Site::with_policy(kind, text, &[]);
    let forged: [&[&str]; 12] = [
        &["x-forwarded-for: 198.51.100.1"],
        &["x-forwarded-for: 198.51.100.2, 198.51.100.3", "x-forwarded-for: 198.51.100.4"],
        &["x-real-ip: 198.51.100.5", "forwarded: for=198.51.100.6"],
        &["x-forwarded-uri: /free"],
        &["x-forwarded-uri: /free", "x-forwarded-method: GET"],
        &["x-original-uri: /free", "x-original-method: GET"],
        &["x-original-url: /free", "x-rewrite-url: /free", "x-forwarded-path: /free"],
        &["x-forwarded-uri: /free", "x-original-uri: /free", "x-original-method: GET"],
        &["x-forwarded-host: free.example.com", "x-forwarded-host: other"],
        &["x-tollgate-token: 0123456789abcdef"],
        &["tollgate-receipt: x", "x-ratelimit-limit: 99", "x-http-method-override: HEAD"],
        &["x-original-method: \"GET", "x-forwarded-method: GE T", "x-forwarded-for: for=\"_x"],
    ];
    for (used, fields) in (1..).zip(forged) {
        let answer = site.get("/user", fields);
        assert_eq!((answer.status, number(&answer, "x-ratelimit-used")), (200, used), "{fields:?}");
    }
    for fields in forged {
        assert_eq!(site.get("/user", fields).status, 429, "{fields:?}");
    }
    assert_eq!(site.api.requested(), forged.len());
}

/// A sub-request contains the original request and additional fields, so a head that the proxy
/// accepts may be too large for the sub-request.
pub(crate) fn nobody_passes_by_the_size_of_a_head(kind: Kind) {
    let site = Site::with_policy(kind, &limit_of(1), &[]);
    assert_eq!(site.get("/user", &[]).status, 200);
    let short = (0..=160).step_by(4).chain(90..=100);
    let many = short.map(|count| (0..count).map(|field| format!("x-{field}: a")).collect());
    let long = [4_000, 8_000, 8_200, 12_000, 15_000, 15_100, 15_150, 16_000, 30_000, 33_000];
    let long = long.map(|length| vec![format!("x-long: {}", "a".repeat(length))]);
    for fields in many.chain(long) {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let bytes: usize = fields.iter().map(|field| field.len()).sum();
        let status = site.get("/user", &fields).status;
        let met = format!("{status} with {} fields more of {bytes} bytes", fields.len());
        assert!(matches!(status, 400 | 413 | 429 | 431), "{met}");
    }
    for length in [1_000, 4_000, 4_100, 8_000, 15_000] {
        let status = site.get(&format!("/user?{}", "a".repeat(length)), &[]).status;
        assert!(matches!(status, 400 | 413 | 414 | 429 | 431), "{status} with {length} bytes");
    }
    assert_eq!((site.get("/user", &[]).status, site.api.requested()), (429, 1));
}

/// With the shipped configuration, an outage of the limiter is not an outage of the service.
pub(crate) fn everything_passes_while_tollgate_is_not_there(kind: Kind) {
    let mut site = Site::with_policy(kind, &limit_of(1), &[]);
    assert_eq!(site.get("/user", &[]).status, 200);
    assert_eq!(site.get("/user", &[]).status, 429);
    site.tollgate.stop();
    for _ in 0..3 {
        let answer = site.get("/user", &[]);
        assert_eq!((answer.status, answer.field("x-ratelimit-limit")), (200, ""), "{answer:?}");
    }
    assert_eq!(site.api.requested(), 4);
}

pub(crate) fn nothing_passes_while_tollgate_is_not_there(kind: Kind, changes: Changes<'_>) {
    let mut site = Site::with_policy(kind, &limit_of(1), changes);
    assert_eq!(site.get("/user", &[]).status, 200);
    assert_eq!(site.get("/user", &[]).status, 429);
    site.tollgate.stop();
    for _ in 0..3 {
        assert_eq!(site.get("/user", &[]).status, 503);
    }
    assert_eq!(site.api.requested(), 1);
}

/// A refusal by Tollgate itself is not an outage of Tollgate.
pub(crate) fn a_policy_that_denies_without_its_store_is_obeyed(kind: Kind) {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
    let path = folder.path().join("policy.yaml");
    let text = limit_of(5).replace("limits: few }", "limits: few, on_failure: deny }");
    let store = format!(
        "secret: {{ file: {} }}\n\
         store: {{ redis: {{ shards: {{ one: {{ primary: \"redis://{nobody}\" }} }} }} }}\n",
        key.display()
    );
    std::fs::write(&path, text + &store).unwrap();
    let site = Site::start(kind, &path, &[]);
    let answer = site.get("/user", &[]);
    assert_eq!((answer.status, site.api.requested()), (503, 0), "{answer:?}");
    let problem: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert!(
        problem["type"].as_str().unwrap().ends_with("#temporary-reduced-capacity"),
        "{problem}"
    );
}

/// A policy can refuse requests with the statuses by which a proxy reports that it did not reach
/// Tollgate, and the client's `Accept` can select the media type of the body.
pub(crate) fn no_refusal_is_taken_for_an_outage(kind: Kind) {
    for status in [502, 503, 504] {
        let body = "{ json: '{}', html: '<p>Wait</p>', text: Wait }";
        let refuse = format!("answers: {{ refuse: {{ status: {status}, body: {body} }},");
        let text = limit_of(1).replace("answers: {", &refuse);
        let site = Site::with_policy(kind, &text, &[]);
        assert_eq!(site.get("/user", &[]).status, 200);
        for media_type in ["*/*", "application/json", "text/html", "text/plain", "none/none"] {
            let answer = site.get("/user", &[&format!("accept: {media_type}")]);
            assert!([500, 503].contains(&answer.status), "{status} {media_type}: {answer:?}");
            if (kind, status) == (Kind::HaProxy, 503) && media_type.starts_with("text/") {
                let sent = answer.field("content-type");
                assert!(sent.starts_with(media_type), "{media_type}: {answer:?}");
            }
        }
        assert_eq!(site.api.requested(), 1);
    }
}

/// `with_token` adds the token of the listener to the configuration.
pub(crate) fn a_listener_with_tokens_believes_who_shows_one(kind: Kind, with_token: Changes<'_>) {
    let folder = tempfile::TempDir::new().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "0123456789abcdef\n").unwrap();
    let path = folder.path().join("policy.yaml");
    let listener = format!(
        "serve: {{ http: {{ listen: '127.0.0.1:1', tokens: {{ file: {} }} }} }}\n",
        tokens.display()
    );
    std::fs::write(&path, limit_of(2) + &listener).unwrap();
    let believed = Site::start(kind, &path, with_token);
    let statuses = [(); 3].map(|()| believed.get("/user", &["x-tollgate-token: another"]).status);
    assert_eq!(statuses, [200, 200, 429]);
    let stranger = Site::start(kind, &path, &[]);
    for fields in [&[][..], &["x-tollgate-token: 0123456789abcdee"]] {
        let answer = stranger.get("/user", fields);
        assert!([403, 500].contains(&answer.status), "{answer:?}");
    }
    assert_eq!(stranger.api.requested(), 0);
}

pub(crate) fn number(answer: &Answer, name: &str) -> u64 {
    answer.field(name).parse().unwrap_or_else(|_| panic!("no number {name} in {answer:?}"))
}
