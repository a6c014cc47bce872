//! Tests of `tollgate import`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::world::tollgate;

const EDGE: &str = "domain: edge
descriptors:
  - key: generic_key
    value: slow
    value_to_metric: true
    rate_limit: { unit: second, requests_per_unit: 3 }
";

fn imported(folder: &tempfile::TempDir, text: &str, arguments: &[&str]) -> Output {
    let path = source(folder);
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    tollgate(&[&["import", "envoy-ratelimit", &path], arguments].concat())
}

fn source(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("edge.yaml")
}

#[test]
fn a_policy_is_written_that_check_takes_and_every_construct_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml").display().to_string();
    let output = imported(&folder, EDGE, &["--output", &policy]);
    assert!(output.status.success() && output.stdout.is_empty());
    let response = String::from_utf8(output.stderr).unwrap();
    let place = source(&folder).display().to_string();
    for line in [
        format!("{place}:5: not supported: value_to_metric: left out"),
        format!("{place}:6: kept: rate_limit of 3 in 1s: limit generic_key.slow"),
        "4 kept, 0 approximated, 1 not supported".to_owned(),
    ] {
        assert!(response.contains(&line), "{line:?} is not in\n{response}");
    }
    let checked = tollgate(&["check", "--policy", &policy]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let described = String::from_utf8(checked.stdout).unwrap();
    assert!(described.contains("descriptors of edge, each counted separately"), "{described}");
    assert!(described.contains("3 requests per 1s (calendar) for each descriptor"), "{described}");
}

#[test]
fn the_documented_example_is_what_is_written_and_reported() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/coming-from-envoy-ratelimit.md")).unwrap();
    let mut blocks = page.split("```").skip(1).step_by(2);
    let mut block = |kind: &str| {
        let found = blocks.find_map(|block| block.strip_prefix(&format!("{kind}\n")));
        found.unwrap_or_else(|| panic!("no {kind} is left"))
    };
    let (source, command, policy) = (block("yaml"), block("console"), block("yaml"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("edge.yaml"), source).unwrap();
    let (line, response) = command.split_once('\n').unwrap();
    let arguments = line.strip_prefix("$ tollgate ").unwrap().split_whitespace();
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .current_dir(folder.path())
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), response);
    let written = std::fs::read_to_string(folder.path().join("policy.yaml")).unwrap();
    assert_eq!(written, policy);
}

#[test]
fn the_policy_goes_to_stdout_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let output = imported(&folder, EDGE, &["--counting", "atomic"]);
    let policy = String::from_utf8(output.stdout).unwrap();
    assert!(policy.contains("\ndescriptors:\n  - domain: edge\n    tree:\n"), "{policy}");
}

#[test]
fn nothing_is_written_of_files_that_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    let arguments = ["--output", &policy.display().to_string()];
    let output = imported(&folder, &EDGE.replace("second", "fortnight"), &arguments);
    assert_eq!(output.status.code(), Some(1));
    let response = String::from_utf8(output.stderr).unwrap();
    assert!(response.contains("edge.yaml:6:25: unknown unit \"fortnight\""), "{response}");
    assert!(!policy.exists());
}

/// The bug: the source was overwritten if the output named it by another path.
#[test]
fn a_file_is_not_written_over_by_its_own_policy() {
    let folder = tempfile::tempdir().unwrap();
    let own = source(&folder);
    std::fs::write(&own, EDGE).unwrap();
    let link = folder.path().join("link.yaml");
    std::os::unix::fs::symlink(&own, &link).unwrap();
    for same in [own.clone(), folder.path().join("./edge.yaml"), link] {
        let same = same.display().to_string();
        let output = imported(&folder, EDGE, &["--output", &same]);
        assert_eq!(output.status.code(), Some(1), "{same}");
        let response = String::from_utf8(output.stderr).unwrap();
        let described = format!("{same} is the input {}: name another file", own.display());
        assert!(response.contains(&described), "{response}");
        assert_eq!(std::fs::read_to_string(&own).unwrap(), EDGE, "{same}");
    }
}

#[test]
fn a_policy_replaces_a_file_or_goes_to_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    std::fs::write(&policy, "an older policy, which is longer\n".repeat(100)).unwrap();
    let output = imported(&folder, EDGE, &["--output", &policy.display().to_string()]);
    assert!(output.status.success());
    let written = std::fs::read_to_string(&policy).unwrap();
    assert!(written.starts_with("# Written by"), "{written}");
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 2, "no temporary file is left");
    let output = imported(&folder, EDGE, &["--output", "/dev/stdout"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), written);
}
