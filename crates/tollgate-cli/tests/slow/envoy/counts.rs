//! Which requests are admitted, and the responses of clients.

use std::collections::BTreeSet;
use std::thread;

use crate::envoy::site::{LONG_WINDOW, Site};

/// A replacement in the policy that allows five requests per day for each address.
const FIVE: (&str, &str) = ("quota: 600, window: 1m, anchor: calendar", "quota: 5, window: 1d");

#[test]
fn exactly_as_many_pass_as_the_limit_says() {
    let site = Site::start(&[LONG_WINDOW], &[]);
    let response = thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = site.envoy.connect();
                    let answers = (0..100).map(|_| connection.get("/"));
                    let response = |answer: crate::support::world::Answer| {
                        (answer.status, answer.field("x-ratelimit-remaining").to_owned())
                    };
                    answers.map(response).collect::<Vec<_>>()
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    let (passed, refused): (Vec<_>, Vec<_>) = response.into_iter().partition(|one| one.0 == 200);
    assert_eq!((passed.len(), refused.len()), (600, 200));
    assert!(refused.iter().all(|one| *one == (429, "0".to_owned())));
    // The remaining numbers are all different: every request was counted exactly once.
    let left: BTreeSet<u32> = passed.iter().map(|one| one.1.parse().unwrap()).collect();
    assert_eq!(left, (0..600).collect());
}

#[test]
fn clients_see_their_status() {
    let site = Site::start(&[FIVE], &[]);
    let key = "x-api-key: one";
    let answer = site.envoy.get("/", &[key]);
    assert_eq!((answer.status, answer.body.as_str()), (200, "hello"));
    let policies = "\"per-address\";q=5;w=86400, \"per-key\";q=5000;w=3600";
    assert_eq!(answer.field("ratelimit-policy"), policies);
    assert!(answer.field("ratelimit").starts_with("\"per-address\";r=4;t="));
    assert!(answer.field("ratelimit").contains("\"per-key\";r=4999;t="));

    (0..4).for_each(|_| assert_eq!(site.envoy.get("/", &[]).status, 200));
    let refused = site.envoy.get("/", &[key]);
    assert_eq!(refused.status, 429);
    assert_eq!(refused.field("x-envoy-ratelimited"), "true");
    assert_eq!(refused.field("content-type"), "application/json; charset=utf-8");
    let wait: u64 = refused.field("retry-after").parse().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    let body: serde_json::Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!(body["violated-policies"], serde_json::json!(["per-address"]));
    // A request that the address's limit refuses is not charged on the key's limit.
    assert!(refused.field("ratelimit").contains("\"per-key\";r=4999;"), "{refused:?}");
}

/// Envoy copies a field's value into a descriptor unchanged.
#[test]
fn a_value_that_is_no_text_is_counted_like_any_other() {
    let site = Site::start(&[FIVE], &[]);
    let mut connection = site.envoy.connect();
    for remaining in (0..5).rev() {
        let answer = connection.get_with("/", b"x-api-key: \xff\r\n");
        assert_eq!(answer.status, 200);
        let response = format!("\"per-address\";r={remaining};");
        assert!(answer.field("ratelimit").starts_with(&response), "{answer:?}");
    }
    assert_eq!(connection.get_with("/", b"x-api-key: \xfe\r\n").status, 429);
    assert_eq!(site.envoy.counted("cluster.service.ratelimit.error"), 0);
}

#[test]
fn what_is_blocked_is_refused_without_a_reason() {
    let site = Site::start(&[LONG_WINDOW], &[]);
    let answer = site.envoy.get("/closed/path", &[]);
    assert_eq!((answer.status, answer.body.as_str()), (429, ""));
    assert_eq!((answer.field("ratelimit"), answer.field("retry-after")), ("", ""));
}

#[test]
fn envoy_can_report_by_itself() {
    let own = "failure_mode_deny: false\n                      \
               enable_x_ratelimit_headers: DRAFT_VERSION_03";
    let site = Site::start(
        &[("quota: 600, window: 1m", "quota: 600, window: 24h"), ("[ietf, github]", "[ietf]")],
        &[("failure_mode_deny: false", own)],
    );
    let answer = site.envoy.get("/", &["x-api-key: one"]);
    let limits = "600, 600;w=86400;name=\"per-address\", 5000;w=3600;name=\"per-key\"";
    assert_eq!(answer.field("x-ratelimit-limit"), limits);
    assert_eq!(answer.field("x-ratelimit-remaining"), "599");
}

#[test]
fn a_client_cannot_speak_for_another_address() {
    let site = Site::start(&[FIVE], &[]);
    for number in 0..5 {
        let forged = format!("x-forwarded-for: 198.51.100.{number}");
        assert_eq!(site.envoy.get("/", &[&forged]).status, 200);
    }
    assert_eq!(site.envoy.get("/", &["x-forwarded-for: 198.51.100.9"]).status, 429);
}

#[test]
fn a_head_too_large_to_be_counted_never_reaches_the_service() {
    let site = Site::start(&[FIVE], &[]);
    let large = format!("x-api-key: {}", "k".repeat(15_000));
    assert_eq!(site.envoy.get("/", &[&large]).field("x-ratelimit-used"), "1");
    let too_large = format!("x-api-key: {}", "k".repeat(70_000));
    assert_eq!(site.envoy.get("/", &[&too_large]).status, 431);
}
