//! The files of this project.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Returns the root of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Reads a file of this project.
pub(crate) fn shipped(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Parses a YAML document.
pub(crate) fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

/// Returns the texts of a list.
pub(crate) fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    list.iter()
        .map(|text| text.as_str().unwrap_or_else(|| panic!("no text: {text}")).into())
        .collect()
}

/// Returns `text` with `from` replaced, which must occur once.
pub(crate) fn changed(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from:?} in\n{text}");
    text.replacen(from, to, 1)
}

/// Runs a program that the tests need to its end.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output();
    output.unwrap_or_else(|error| panic!("{command:?}: {error}; ./test installs what is missing"))
}
