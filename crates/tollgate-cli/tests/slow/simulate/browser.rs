//! The report in a real browser.

use std::process::Command;

use tempfile::TempDir;

use crate::simulate::setup::*;

#[test]
fn the_report_opens_in_chromium() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("report.html").display().to_string();
    let other = without_refunds(folder.path());
    simulate(&[
        "--policy",
        &policy("github.yaml"),
        "--compare",
        &other,
        "--report",
        &page,
        &shipped_log(),
    ]);
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .args(["--dump-dom", &format!("file://{page}")])
        .output()
        .unwrap_or_else(|error| {
            panic!("cannot run chromium ({error}): install it, with `apt-get install -y chromium`")
        });
    let document = String::from_utf8(output.stdout).unwrap();
    for part in [
        "10,000",
        "9,985",
        "Refusals over time",
        "Comparison",
        "address=130.237.218.86",
        "</footer></main>",
    ] {
        assert!(document.contains(part), "{part:?} is not in the document that chromium made");
    }
    // A browser would move invalid markup: the drawings must be where they were written.
    assert_eq!(
        document.matches("<svg").count(),
        std::fs::read_to_string(page).unwrap().matches("<svg").count()
    );
}
