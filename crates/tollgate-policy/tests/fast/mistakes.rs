//! Snapshots of all messages about files with mistakes.
//!
//! Each file under `mistakes/` has cases: a policy and the messages about it. `UPDATE=1 cargo test
//! -p tollgate-policy mistakes` rewrites the messages.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tollgate_policy::parse;

/// The beginning of the line that starts a case. The title of the case follows.
const CASE: &str = "### ";
/// The line that separates a policy from the messages about it.
const SAID: &str = "--- said\n";

#[test]
fn every_mistake_is_reported_as_written_here() {
    let mut cases = 0;
    for path in files() {
        let written = std::fs::read_to_string(&path).unwrap();
        let mut expected = String::new();
        for case in written.split(CASE).filter(|case| !case.is_empty()) {
            let (title, case) = case.split_once('\n').unwrap();
            let policy = case.split_once(SAID).map_or(case, |(policy, _)| policy);
            writeln!(expected, "{CASE}{title}\n{policy}{SAID}{}\n", message(policy)).unwrap();
            cases += 1;
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap();
        for (written, expected) in written.split(CASE).zip(expected.split(CASE)) {
            assert_eq!(written, expected, "in {}", path.display());
        }
        assert_eq!(written, expected, "in {}", path.display());
    }
    assert!(cases >= 100, "only {cases} cases");
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fast/mistakes");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns all messages about `policy`. White space at the ends of lines is removed.
fn message(policy: &str) -> String {
    let message = match parse("shop.yaml", policy) {
        Err(mistakes) => mistakes.to_string(),
        Ok(loaded) if loaded.warnings.is_empty() => "nothing".to_owned(),
        Ok(loaded) => {
            let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
            format!("{}\n\nonly warnings", warnings.join("\n\n"))
        }
    };
    message.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
