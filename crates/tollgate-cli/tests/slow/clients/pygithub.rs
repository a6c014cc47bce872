//! PyGithub with its own retries.

use serde_json::Value;

use crate::clients::policies::Policy;
use crate::clients::programs::python;
use crate::support::api::Api;
use crate::support::world::{Proxy, policy};

fn pygithub(proxy: &Proxy, scenario: &str, token: &str) -> Value {
    python("octocat.py", &[&format!("http://{}", proxy.address), scenario, token])
}

/// PyGithub always retries after a 429. After a 403, the response determines whether PyGithub
/// retries.
#[test]
fn waits_for_the_reset_of_a_limit_and_gets_in() {
    for status in [429, 403] {
        let policy = Policy::github_with(&[
            ("core: { quota: 5_000, window: 1h", "core: { quota: 3, window: 4s"),
            ("answers:", &format!("answers:\n  refuse: {{ status: {status} }}")),
        ]);
        let api = Api::start();
        let met = pygithub(&api.behind(&policy.path()), "recover", "one");
        assert_eq!(met["asked"], api.requested(), "{met}");
        assert_eq!((&met["limit"], &met["remaining"]), (&3.into(), &2.into()), "a new window");
        let [refusal] = met["met"].as_array().unwrap().as_slice() else { panic!("{met}") };
        assert_eq!(refusal["status"], status);
        assert_eq!(refusal["headers"]["x-ratelimit-remaining"], "0");
        let reset: u64 = refusal["headers"]["x-ratelimit-reset"].as_str().unwrap().parse().unwrap();
        assert!(met["reset"].as_u64().unwrap() > reset, "{met}");
    }
}

#[test]
fn waits_as_a_hidden_limit_says_and_gets_in() {
    let policy = Policy::github_with(&[("quota: 900, window: 1m", "quota: 5, window: 4s")]);
    let api = Api::start();
    let met = pygithub(&api.behind(&policy.path()), "recover", "one");
    assert_eq!(met["asked"], api.requested(), "{met}");
    assert_eq!(met["limit"], 5_000);
    let [refusal] = met["met"].as_array().unwrap().as_slice() else { panic!("{met}") };
    assert_eq!(refusal["status"], 429);
    assert!(refusal["headers"].get("x-ratelimit-remaining").is_none(), "{met}");
}

#[test]
fn knows_a_refusal_for_what_it_is() {
    let refused_with_403 =
        Policy::github_with(&[("answers:", "answers:\n  refuse: { status: 403 }")]);
    for (policy, status) in [(policy("github.yaml"), 429), (refused_with_403.path(), 403)] {
        let api = Api::start();
        let met = pygithub(&api.behind(&policy), "exhaust", "");
        assert_eq!(met["free"], 60, "asking how it stands is free: {met}");
        assert_eq!(met["admitted"], 60);
        assert_eq!(api.requested(), 60);
        assert_eq!(met["status"], status);
        // Only a 403 has this exception type; GitHub's 429 is a GithubException.
        assert_eq!(met["is_rate_limit"], status == 403, "{met}");
        assert_eq!(met["message"], "API rate limit exceeded.");
        assert_eq!(met["headers"]["x-ratelimit-remaining"], "0");
    }
}
