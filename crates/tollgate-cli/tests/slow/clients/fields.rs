//! How client libraries interpret the rate limit fields of every profile.

use serde_json::{Value, json};

use crate::clients::policies::Policy;
use crate::clients::programs::{node, python};
use crate::support::api::Api;
use crate::support::world::Proxy;

const QUOTA: u64 = 7;

/// A proxy that reports two limits with one profile, and a client for it.
fn telling(profile: &str) -> (Proxy, String) {
    let policy = Policy::new(&format!(
        "subjects: {{ address: {{ client_address: {{}} }} }}\n\
         limits:\n  \
           hourly: {{ quota: {QUOTA}, window: 1h, per: address }}\n  \
           daily: {{ quota: 1_000, window: 1d, per: address }}\n\
         rules: [ {{ name: all, limits: [hourly, daily] }} ]\n\
         answers: {{ headers: [{profile}] }}\n"
    ));
    let proxy = Api::start().behind(&policy.path());
    let url = format!("http://{}/user", proxy.address);
    (proxy, url)
}

#[test]
fn ratelimit_header_parser_reads_the_tightest_limit_of_every_profile_that_it_knows() {
    for profile in ["github", "draft-03", "three-fields"] {
        let (_proxy, url) = telling(profile);
        for used in 1..=3 {
            let read = node("header_parser.mjs", &[&url]);
            let numbers = ["limit", "used", "remaining"].map(|name| read[name].as_u64().unwrap());
            assert_eq!(numbers, [QUOTA, used, QUOTA - used], "{profile}: {read}");
            assert_is_within_the_hour(&read);
        }
    }
}

/// The reset is the end of a window that began before the response arrived, in whole seconds.
fn assert_is_within_the_hour(read: &Value) {
    let [reset, before, after] =
        ["reset", "before", "after"].map(|name| read[name].as_i64().unwrap());
    assert!(before < reset && reset <= after + 3_600_000 + 1_000, "{read}");
}

#[test]
fn retryheader_reads_the_structured_fields_of_the_draft() {
    let (_proxy, url) = telling("ietf");
    let read = python("ietf.py", &[&url]);
    let policies =
        json!([["hourly", QUOTA, 3_600, "requests"], ["daily", 1_000, 86_400, "requests"]]);
    assert_eq!(read["policies"], policies);
    let statuses = read["standings"].as_array().unwrap();
    for (status, (name, remaining, window)) in
        statuses.iter().zip([("hourly", QUOTA - 1, 3_600), ("daily", 999, 86_400)])
    {
        assert_eq!((&status[0], &status[1]), (&name.into(), &remaining.into()), "{read}");
        assert!((1..=window).contains(&status[2].as_u64().unwrap()), "{read}");
    }
    assert_eq!(statuses.len(), 2);
    assert_eq!(read["delay"], Value::Null, "there is nothing to wait for");
}

#[test]
fn retryheader_waits_as_long_as_a_refusal_says() {
    let (proxy, url) = telling("ietf");
    for _ in 0..QUOTA {
        assert_eq!(proxy.get("/user", &[]).status, 200);
    }
    let read = python("ietf.py", &[&url]);
    assert_eq!(read["standings"][0][1], 0, "{read}");
    let response: f64 = read["retry_after"].as_str().unwrap().parse().unwrap();
    assert_eq!(read["delay"], response);
    assert_eq!(read["standings"][0][2], response, "both fields name the same moment");
}
