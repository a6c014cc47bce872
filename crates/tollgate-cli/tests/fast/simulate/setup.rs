//! Runs the binary with its input.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

/// Returns the repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the log under `examples/`.
pub(crate) fn shipped_log() -> String {
    root().join("examples/access-2015-05.log").display().to_string()
}

/// Returns a policy under `policies/`.
pub(crate) fn policy(name: &str) -> String {
    root().join("policies").join(name).display().to_string()
}

/// Writes a file and returns its path.
pub(crate) fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Returns GitHub's policy without its line on refunds.
pub(crate) fn without_refunds(folder: &Path) -> String {
    let text = std::fs::read_to_string(policy("github.yaml")).unwrap();
    let kept: Vec<_> =
        text.lines().filter(|line| !line.trim_start().starts_with("refund:")).collect();
    assert_eq!(kept.len() + 1, text.lines().count(), "the policy has one line on refunds");
    write(folder, "without-refunds.yaml", kept.join("\n"))
}

/// Compresses `text`.
pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Runs `tollgate simulate`, with `input` as its standard input.
pub(crate) fn simulate_with(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .arg("simulate")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command that ends before it has read everything closes the pipe, which is allowed.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// Runs `tollgate simulate`, which must succeed, and returns its standard output.
pub(crate) fn simulate(arguments: &[&str]) -> String {
    succeeded(&simulate_with(arguments, b""))
}

/// Runs `tollgate simulate --json`, which must succeed.
pub(crate) fn simulate_json(arguments: &[&str]) -> Value {
    json(&simulate_with(&[&["--json"], arguments].concat(), b""))
}

/// Parses the JSON output of a run that must have succeeded.
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_str(&succeeded(output)).unwrap()
}

/// Returns the standard output of a run that must have succeeded.
pub(crate) fn succeeded(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the exit code and standard error of a run that must have failed.
pub(crate) fn failed(arguments: &[&str]) -> (i32, String) {
    let output = simulate_with(arguments, b"");
    assert!(!output.status.success());
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}
