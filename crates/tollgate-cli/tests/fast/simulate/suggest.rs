//! Tests of `tollgate suggest` as users run it.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::simulate::setup::*;

fn suggest(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tollgate")).arg("suggest").args(arguments).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = suggest(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn proposed(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(&[&["--json"], arguments].concat())).unwrap()
}

/// The written policy is valid. On the same log, it refuses the requests that the proposal states.
#[test]
fn the_proposed_policy_refuses_what_was_said() {
    let folder = TempDir::new().unwrap();
    let policy = folder.path().join("policy.yaml").display().to_string();
    let report = proposed(&["--write", &policy, &shipped_log()]);
    assert_eq!((&report["requests"], &report["subjects"]), (&10_000.into(), &1_753.into()));
    assert_eq!(std::fs::read_to_string(&policy).unwrap(), report["policy"].as_str().unwrap());

    let simulated = simulate_json(&["--policy", &policy, &shipped_log()]);
    assert_eq!(simulated["refused"], report["simulated"]["requests_refused"]);
    assert!(simulated["refused"].as_u64().unwrap() <= 100, "1 % of 10,000: {simulated:#}");
    assert!(report["simulated"]["subjects_refused"].as_u64().unwrap() <= 17);

    let again = suggest(&["--write", &policy, &shipped_log()]);
    let error = String::from_utf8(again.stderr).unwrap();
    assert!(!again.status.success() && error.contains("it exists; name another file"), "{error}");
}

#[test]
fn nobody_is_refused_if_nobody_may_be() {
    let report = proposed(&["--clients", "0%", "--window", "10s", &shipped_log()]);
    assert_eq!(report["simulated"]["requests_refused"], 0);
    assert_eq!(report["windows"][0]["quota"], report["windows"][0]["peak"]);
}

/// The bug: requests that the proxy answers with 400 counted for the quotas.
#[test]
fn ambiguous_requests_counted_for_the_quotas() {
    let folder = TempDir::new().unwrap();
    let line = |second: u32, target: &str| {
        format!("192.0.2.1 - - [17/May/2015:10:05:{second:02} +0000] \"GET {target}\" 200 1\n")
    };
    let mut lines: String = (0..10).map(|second| line(second, "/")).collect();
    lines.extend((10..40).map(|second| line(second, "/a%2fb")));
    let log = write(folder.path(), "log", lines);
    let report = proposed(&["--window", "1m", "--clients", "0%", &log]);
    assert_eq!((&report["requests"], &report["requests_ambiguous"]), (&10.into(), &30.into()));
    assert_eq!(report["requests_without"], 0);
    assert_eq!(report["windows"][0]["peak"], 10);
    assert_eq!(report["simulated"]["requests_refused"], 0);
    let text = printed(&["--window", "1m", &log]);
    assert!(text.contains("30 requests that services can interpret in different ways"), "{text}");
}

/// The policy does not limit requests without the header, and the report states their number.
#[test]
fn quotas_are_for_the_clients_that_a_header_names() {
    let folder = TempDir::new().unwrap();
    let line = |second: u32, key: &str| {
        format!(
            r#"{{"time":"2026-01-01T00:00:{second:02}Z","client":"192.0.2.1","method":"GET","path":"/","status":200{key}}}"#
        )
    };
    let mut lines: Vec<_> = (0..30).map(|second| line(second, r#","key":"a""#)).collect();
    lines.extend((30..40).map(|second| line(second, r#","key":"b""#)));
    lines.extend((40..45).map(|second| line(second, "")));
    let log = write(folder.path(), "log.json", lines.join("\n"));
    let flags = ["--per", "header:x-key", "--field", "header.x-key=key", "--clients", "50%"];
    let report = proposed(&[&flags[..], &["--requests", "50%", "--window", "1m", &log]].concat());
    assert_eq!(report["subjects"], 2, "{report:#}");
    assert_eq!((&report["requests"], &report["requests_without"]), (&40.into(), &5.into()));
    assert_eq!(report["windows"][0]["quota"], 10);
    assert_eq!(report["simulated"]["requests_refused"], 20);
    assert!(report["policy"].as_str().unwrap().contains("match: { has: client }"));
}

#[test]
fn mistakes_are_told_with_what_is_right() {
    for (flags, message) in [
        (&["--per", "cookie"][..], "expected address, user or header:NAME"),
        (&["--window", "month"], "expected a duration such as 10s, 1m, 1h or 1d"),
        (&["--clients", "1"], "expected a percentage such as 1% or 0.5%"),
        (&["--per", "user", "--window", "1m"], "no request has a subject by `--per user`"),
    ] {
        let output = suggest(&[flags, &[&shipped_log()]].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(message), "{flags:?}: {error}");
    }
}
