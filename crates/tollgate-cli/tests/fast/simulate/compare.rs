//! Comparison of two policies.

use tempfile::TempDir;

use crate::simulate::setup::*;

#[test]
fn both_policies_are_reported_with_their_difference() {
    let folder = TempDir::new().unwrap();
    let other = without_refunds(folder.path());
    let page = folder.path().join("report.html").display().to_string();
    let arguments = ["--policy", &policy("github.yaml"), "--compare", &other, &shipped_log()];
    let report = simulate_json(&arguments);
    assert_eq!((&report["refused"], &report["compare"]["refused"]), (&15.into(), &48.into()));
    assert_eq!(report["compare"]["limits"]["anonymous"]["refunded"], 0);
    assert_eq!(report["compare"]["policy"], other.as_str());

    let table = simulate(&[&arguments[..], &["--report", &page]].concat());
    let line =
        table.lines().find(|line| line.trim_start().starts_with("refused by anonymous")).unwrap();
    assert_eq!(line.split_whitespace().rev().take(3).collect::<Vec<_>>(), ["+33", "48", "15"]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Comparison") && page.contains("+33"));
}

#[test]
fn a_policy_beside_itself_differs_in_nothing() {
    let github = policy("github.yaml");
    let report = simulate_json(&["--policy", &github, "--compare", &github, &shipped_log()]);
    for name in [
        "requests",
        "admitted",
        "refused",
        "refunded",
        "limits",
        "subjects",
        "over_time",
        "refunds",
    ] {
        assert_eq!(report[name], report["compare"][name], "{name}");
    }
}

/// A log has no concurrent requests. Charging on completion can therefore differ from charging on
/// arrival only for free requests, which open no window.
#[test]
fn charging_on_completion_admits_what_charging_on_arrival_does() {
    let folder = TempDir::new().unwrap();
    let charged_later = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        let text =
            text.replace("limits: anonymous", "limits: anonymous\n    charge: on_completion");
        write(folder.path(), "later.yaml", text)
    };
    let now = without_refunds(folder.path());
    let later = charged_later(&now);
    let report = simulate_json(&["--policy", &now, "--compare", &later, &shipped_log()]);
    for name in ["requests", "admitted", "refused", "limits", "subjects", "over_time"] {
        assert_eq!(report[name], report["compare"][name], "{name}");
    }
    assert_eq!(report["refused"], 48);

    let later = charged_later(&policy("github.yaml"));
    let report = simulate_json(&["--policy", &later, &shipped_log()]);
    assert!(report["refunded"].as_u64().unwrap() > 0);
    assert_eq!(report["limits"]["anonymous"]["refunded"], report["refunded"]);
}

#[test]
fn a_candidate_is_compared_with_its_limit() {
    let folder = TempDir::new().unwrap();
    let text = |more: &str| {
        format!(
            "subjects: {{ address: {{ client_address: {{}} }} }}\n\
             limits: {{ all: {{ quota: 60, window: 1h, per: address{more} }} }}\n\
             rules: [ {{ limits: all }} ]\n"
        )
    };
    let tried = text(", candidate: { quota: 30 }");
    let tried = write(folder.path(), "tried.yaml", tried);
    let adopted = write(folder.path(), "adopted.yaml", text("").replace("60", "30"));
    let page = folder.path().join("report.html").display().to_string();
    let arguments = ["--policy", &tried, "--compare", &adopted, &shipped_log()];
    let report = simulate_json(&arguments);
    let candidate = &report["limits"]["all"]["candidate"];
    let count = |name: &str| candidate[name].as_u64().unwrap();
    assert_eq!(count("both_refuse") + count("only_live_refuses"), report["refused"]);
    // After it is adopted, the candidate refuses the requests that it would have refused before.
    let refused = count("both_refuse") + count("only_candidate_refuses");
    assert_eq!(refused, report["compare"]["refused"]);
    assert!(count("only_candidate_refuses") > 0 && candidate["rule"] == "30 per 1h");
    assert!(report["compare"]["limits"]["all"]["candidate"].is_null());

    let response = format!("all, candidate 30 per 1h: {refused} would be refused");
    let table = simulate(&[&arguments[..], &["--report", &page]].concat());
    assert!(table.contains(&response), "{table}");
    assert!(std::fs::read_to_string(page).unwrap().contains("candidate 30 per 1h"));
}
