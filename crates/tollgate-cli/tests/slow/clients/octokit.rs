//! octokit with its throttling plugin.

use serde_json::{Value, json};

use crate::clients::policies::Policy;
use crate::clients::programs::node;
use crate::support::api::Api;
use crate::support::world::{Proxy, policy};

fn octokit(proxy: &Proxy, scenario: &str, token: &str) -> Value {
    node("octokit.mjs", &[&format!("http://{}", proxy.address), scenario, token])
}

#[test]
fn waits_for_the_reset_of_a_limit_and_gets_in() {
    let policy = Policy::github_with(&[(
        "core: { quota: 5_000, window: 1h",
        "core: { quota: 5, window: 4s",
    )]);
    let api = Api::start();
    let met = octokit(&api.behind(&policy.path()), "recover", "one");
    let answers = met["answers"].as_array().unwrap();
    // The request that waited was answered by the service too, so no more requests were sent than
    // admitted.
    assert!(answers.iter().all(|answer| answer["status"] == 200), "{met}");
    assert_eq!(answers.len(), api.requested());
    assert_eq!(met["waits"].as_array().unwrap().len(), 1, "once was enough: {met}");
    assert_eq!(met["waits"][0]["kind"], "primary");
    assert!((1..=6).contains(&met["waits"][0]["seconds"].as_u64().unwrap()), "{met}");
    let [.., before, last] = answers.as_slice() else { panic!("{met}") };
    assert_eq!(field(before, "x-ratelimit-remaining"), "0");
    assert_eq!(field(last, "x-ratelimit-used"), "1");
    assert!(number(last, "x-ratelimit-reset") > number(before, "x-ratelimit-reset"), "{met}");
}

#[test]
fn waits_as_a_hidden_limit_says_and_gets_in() {
    let policy = Policy::github_with(&[("quota: 900, window: 1m", "quota: 5, window: 4s")]);
    let api = Api::start();
    let met = octokit(&api.behind(&policy.path()), "recover", "one");
    let answers = met["answers"].as_array().unwrap();
    assert!(answers.iter().all(|answer| answer["status"] == 200), "{met}");
    assert_eq!(answers.len(), api.requested());
    assert_eq!(met["waits"].as_array().unwrap().len(), 1, "once was enough: {met}");
    assert_eq!(met["waits"][0]["kind"], "secondary");
    assert!((1..=4).contains(&met["waits"][0]["seconds"].as_u64().unwrap()), "{met}");
    assert_eq!(field(answers.last().unwrap(), "x-ratelimit-limit"), "5000");
}

#[test]
fn an_anonymous_client_who_asks_for_seventy_at_once_gets_sixty() {
    let api = Api::start();
    let met = octokit(&api.behind(&policy("github.yaml")), "exhaust", "");
    let answers = met["answers"].as_array().unwrap();
    let (admitted, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer["status"] == 200);
    assert_eq!((admitted.len(), refused.len(), api.requested()), (60, 10, 60));
    let mut left: Vec<_> =
        admitted.iter().map(|answer| number(answer, "x-ratelimit-remaining")).collect();
    left.sort_unstable();
    assert_eq!(left, Vec::from_iter(0..60));
    for refusal in refused {
        assert_eq!(refusal["status"], 429);
        assert_eq!(field(refusal, "x-ratelimit-remaining"), "0");
        let message = refusal["message"].as_str().unwrap();
        assert!(message.contains("API rate limit exceeded."), "{message}");
    }
    let waits = met["waits"].as_array().unwrap();
    assert_eq!(waits.len(), 10);
    assert!(waits.iter().all(|wait| wait["kind"] == "primary"), "{met}");
    assert!(waits.iter().all(|wait| (1..=3_602).contains(&wait["seconds"].as_u64().unwrap())));
}

#[test]
fn every_kind_of_request_is_informed_of_its_limit() {
    let api = Api::start();
    let met = octokit(&api.behind(&policy("github.yaml")), "kinds", "one");
    let [first, again, found, opened] = met["answers"].as_array().unwrap().as_slice() else {
        panic!("{met}")
    };
    assert_eq!(met["waits"], json!([]));
    let response = |answer: &Value| {
        (
            answer["status"].as_u64().unwrap(),
            field(answer, "x-ratelimit-resource").to_owned(),
            number(answer, "x-ratelimit-limit"),
            number(answer, "x-ratelimit-used"),
        )
    };
    assert_eq!(response(first), (200, "core".into(), 5_000, 1));
    assert_eq!(response(again), (304, "core".into(), 5_000, 1), "what has not changed is free");
    assert_eq!(response(found), (200, "search".into(), 30, 1));
    assert_eq!(response(opened), (201, "core".into(), 5_000, 2));
    let resources = &met["standing"]["resources"];
    assert_eq!(resources["core"]["remaining"], 4_998);
    assert_eq!(resources["search"]["remaining"], 29);
    assert_eq!(resources["core"]["reset"], number(opened, "x-ratelimit-reset"));
    assert_eq!(met["standing"]["rate"], resources["core"]);
}

fn field<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer["headers"][name].as_str().unwrap_or_else(|| panic!("no {name} in {answer}"))
}

fn number(answer: &Value, name: &str) -> u64 {
    field(answer, name).parse().unwrap()
}
