//! Tests of `tollgate check`.

use serde_json::{Value, json};

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
        "60 requests per 1h for each address; clients see it as core",
        "100 requests in flight at once for each token; hidden",
        "refund       if the service responds with 304",
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
    assert_eq!(response.matches("error: ").count(), 2, "{response}");
    assert!(response.ends_with(&format!("\n2 mistakes in {}\n", path.display())), "{response}");

    let output = tollgate(&["check", "--json", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["valid"], &report["errors"][1]["line"]), (&json!(false), &json!(9)));
    assert_eq!(report["errors"][1]["hint"], "did you mean \"anonymous\"?");
}

#[test]
fn warnings_are_marked_and_fail_a_strict_check() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("unused.yaml");
    let text = "subjects: { address: { client_address: {} } }\n\
                limits:\n  core: { quota: 60, window: 1h, per: address }\n  \
                unused: { quota: 60, window: 1h, per: address }\nrules: [{ limits: core }]\n";
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    let plain = tollgate(&["check", &path]);
    assert!(plain.status.success());
    let warning = String::from_utf8(plain.stderr).unwrap();
    assert!(warning.starts_with("warning: "), "{warning}");
    let strict = tollgate(&["check", "--strict", &path]);
    assert_eq!(strict.status.code(), Some(1));
    let error = String::from_utf8(strict.stderr).unwrap();
    assert_eq!(error, format!("{warning}1 warning in {path}, and --strict is set\n"));
    let report: Value =
        serde_json::from_slice(&tollgate(&["check", "--json", &path]).stdout).unwrap();
    assert_eq!((&report["valid"], report["warnings"].as_array().unwrap().len()), (&json!(true), 1));
}

/// Runs the commands with output that other programs read from a pipe. Such a program may close the
/// pipe early.
#[test]
fn a_closed_pipe_ends_no_command_with_a_panic() {
    let policy = policy("github.yaml").display().to_string();
    let folder = tempfile::TempDir::new().unwrap();
    let envoy = folder.path().join("envoy.yaml");
    let text = "domain: edge\ndescriptors: [{ key: a, rate_limit: { unit: minute, \
                requests_per_unit: 1 } }]\n";
    std::fs::write(&envoy, text).unwrap();
    let envoy = envoy.display().to_string();
    for arguments in [
        &["check", &policy][..],
        &["check", &policy, "--path", "/"],
        &["import", "envoy-ratelimit", &envoy],
        &["completions", "bash"],
        &["demo", "--once", "--seconds", "0", "--listen", "127.0.0.1:0"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(arguments)
            .stdout(writer.try_clone().unwrap())
            .stderr(std::process::Stdio::piped())
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {error}");
        assert!(!error.contains("panicked"), "{arguments:?}: {error}");
        // This also holds for the notes on standard error, if both outputs are closed.
        let status = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(arguments)
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .status()
            .unwrap();
        assert!(status.success(), "{arguments:?}");
    }
}
