//! `tollgate check`.

use crate::support::world::{policy, tollgate};

fn check(arguments: &[&str]) -> String {
    let path = policy("github.yaml").display().to_string();
    let output = tollgate(&[&["check", "--policy", &path], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_policy_is_explained_in_words() {
    let text = check(&[]);
    for words in [
        "5000 requests per 1h for each token",
        "60 requests per 1h for each address; told as core",
        "100 requests in flight at once for each token; hidden",
        "refund       when the service answers 304",
        "status path  GET /rate_limit, never charged",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
}

#[test]
fn a_request_is_followed_to_its_limits() {
    let text = check(&["--path", "/search/x", "--header", "Authorization: Bearer secret"]);
    assert!(text.contains("search    matches"), "{text}");
    assert!(text.contains("read      not reached"), "{text}");
    assert!(!text.contains("secret"), "{text}");

    let text = check(&["--method", "POST", "--header", "authorization: x"]);
    assert!(text.contains("points      cost 5 for token=#"), "{text}");

    let text = check(&["--from", "2001:db8:1:2:3::4"]);
    assert!(text.contains("anonymous  cost 1 for address=2001:db8:1:2::/64"), "{text}");
}

#[test]
fn mistakes_are_shown_with_their_place_all_at_once() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("wrong.yaml");
    let text = "subjects:\n  address: { client_address: {} }\n\nlimits:\n  anonymous: { quota: 60, \
                window: 1 hour, per: [address] }\n\nrules:\n  - name: all\n    limits: [anonimous]\n";
    std::fs::write(&path, text).unwrap();
    let output = tollgate(&["check", "--policy", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    let response = String::from_utf8(output.stderr).unwrap();
    for words in ["wrong.yaml:5:", "1 hour", "wrong.yaml:9:", "did you mean \"anonymous\"?", "^^^"]
    {
        assert!(response.contains(words), "{words:?} is not in\n{response}");
    }
}
