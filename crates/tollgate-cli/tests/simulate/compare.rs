//! Two policies side by side.

use tempfile::TempDir;

use crate::setup::*;

#[test]
fn both_policies_are_told_with_their_difference() {
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
    assert!(page.contains("Side by side") && page.contains("+33"));
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
