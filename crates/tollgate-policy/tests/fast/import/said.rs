//! Snapshots of generated policies, notes and errors.
//!
//! Each file under `cases/` contains cases. A case has the files of the server, and the expected
//! result with one counting mode. `UPDATE=1 cargo test -p tollgate-policy import` rewrites the
//! results.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tollgate_policy::import::envoy_ratelimit::Counting;
use tollgate_policy::import::{SourceFile, envoy_ratelimit};

/// The beginning of the line that starts a case. The title of the case follows. If the title ends
/// with `, atomic`, the case is imported with atomic counting.
const CASE: &str = "### ";
/// The beginning of the line that starts a file. The name of the file follows.
const FILE: &str = "--- file ";
/// The line that separates the files from the result.
const SAID: &str = "--- said\n";

#[test]
fn what_becomes_of_each_construct_is_reported_as_written_here() {
    let mut cases = 0;
    for path in files() {
        let written = std::fs::read_to_string(&path).unwrap();
        let mut expected = String::new();
        for case in written.split(CASE).filter(|case| !case.is_empty()) {
            let (title, case) = case.split_once('\n').unwrap();
            let files = case.split_once(SAID).map_or(case, |(files, _)| files);
            writeln!(expected, "{CASE}{title}\n{files}{SAID}{}\n", said(title, files)).unwrap();
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
    assert!(cases >= 30, "only {cases} cases");
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fast/import/cases");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn said(title: &str, files: &str) -> String {
    let files = files.split(FILE).filter(|file| !file.is_empty());
    let files: Vec<SourceFile<'_>> = files
        .map(|file| {
            let (name, text) = file.split_once('\n').unwrap();
            SourceFile { name, text }
        })
        .collect();
    let counting = if title.ends_with(", atomic") { Counting::Atomic } else { Counting::Each };
    let said = match envoy_ratelimit(&files, counting) {
        Ok(imported) => {
            let notes: Vec<String> =
                imported.notes.iter().map(|note| format!("{note}\n")).collect();
            let warnings: Vec<String> =
                imported.warnings.iter().map(|warning| format!("{warning}\n")).collect();
            format!("{}\n{}{}", imported.policy, notes.concat(), warnings.concat())
        }
        Err(error) => error.to_string(),
    };
    said.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
