//! Tests of the reports of a run, and of the texts of failures.

use std::fs;

use crate::{chaos, printed};

#[test]
fn a_report_is_a_page_or_markdown() {
    let directory = tempfile::tempdir().unwrap();
    for (name, begins, figure) in [
        ("report.html", "<!doctype html>", "<td>errors to callers<td>0<td>≤ 0"),
        ("report.md", "# Tollgate under faults", "| errors to callers | 0 | ≤ 0 |"),
    ] {
        let path = directory.path().join(name);
        let arguments = ["--quick", "--report", path.to_str().unwrap(), "step-forgotten"];
        let output = chaos(&arguments).output().unwrap();
        assert!(output.status.success(), "{}", printed(&output));
        let report = fs::read_to_string(path).unwrap();
        assert!(report.starts_with(begins) && report.contains(figure), "{report}");
        assert!(report.contains("1 of 1 scenarios held"), "{report}");
    }
}

#[test]
fn a_server_that_cannot_be_started_is_named() {
    let output = chaos(&["--redis-server", "/no/such/server", "flushed"]).output().unwrap();
    let printed = printed(&output);
    assert!(!output.status.success());
    assert!(printed.contains("cannot start /no/such/server"), "{printed}");
    assert!(printed.contains("--redis-server") && printed.contains("0 of 1"), "{printed}");
}
