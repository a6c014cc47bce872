//! The rules of the house that a machine can check, over every source file of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

const LONGEST_FILE: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every Rust file below `crates`, with its path from the root and its text.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 50, "only {} files found: is this the workspace?", found.len());
    found
}

/// The files, other than `allowed` ones, that hold `word`.
fn holders(word: &str, allowed: impl Fn(&str) -> bool) -> Vec<String> {
    let holds =
        |(name, text): (String, String)| (text.contains(word) && !allowed(&name)).then_some(name);
    sources().into_iter().filter_map(holds).collect()
}

#[test]
fn no_file_is_longer_than_the_house_allows() {
    let long: Vec<_> = sources()
        .into_iter()
        .map(|(name, text)| (text.lines().count(), name))
        .filter(|(lines, _)| *lines > LONGEST_FILE)
        .collect();
    assert!(long.is_empty(), "over {LONGEST_FILE} lines: {long:?}");
}

#[test]
fn only_the_clock_reads_the_time_of_day() {
    // Written in two parts, so that this file is not one of its own finds.
    let word = ["SystemTime", "::now"].concat();
    let readers = holders(&word, |name| {
        name == "crates/tollgate/src/clock.rs" || name.starts_with("crates/tollgate-bench/")
    });
    assert!(readers.is_empty(), "{word} outside clock.rs: {readers:?}");
}

#[test]
fn nothing_is_stubbed_or_skipped() {
    for word in [["to", "do!("], ["unimple", "mented!("], ["#[ig", "nore"], ["FIX", "ME"]] {
        let word = word.concat();
        let holders = holders(&word, |_| false);
        assert!(holders.is_empty(), "{word} in {holders:?}");
    }
}

#[test]
fn the_core_reads_no_clock_and_knows_no_io() {
    for word in ["std::time", "std::net", "std::fs", "std::env", "std::thread"] {
        let holders = holders(word, |name| !name.starts_with("crates/tollgate-core/src/"));
        assert!(holders.is_empty(), "{word} in {holders:?}");
    }
}
