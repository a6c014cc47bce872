//! Tests of project rules that can be checked automatically, for every source file of the
//! workspace.

use std::fs;

use crate::source::{code, root, shipped};

const LONGEST_FILE: usize = 463;

/// Returns every Rust file below `crates`, with its path from the root and its text.
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

/// Returns the files that contain `word`, except the files that `allowed` accepts.
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
    // The searched word is written as two strings, so this file does not match.
    let word = ["SystemTime", "::now"].concat();
    let readers = holders(&word, |name| {
        name == "crates/tollgate/src/clock.rs"
            // This file reads the clock for the expiry of tokens.
            || name == "crates/tollgate-policy/src/token.rs"
            // This file reads the server's clock for deadlines and expiry.
            || name == "crates/tollgate-module/src/entry.rs"
            // This test compares the clock of a memcached server with the machine's clock.
            || name == "crates/tollgate-memcached/tests/slow/clock.rs"
            || name.starts_with("crates/tollgate-bench/")
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

/// Returns the shipped code of each file below `folder`, with its path from the root.
fn shipped_below(folder: &str) -> Vec<(String, String)> {
    let all = sources().into_iter().filter(|(name, _)| name.starts_with(folder));
    let found: Vec<_> = all.map(|(name, text)| (name, shipped(&code(&text)))).collect();
    assert!(!found.is_empty(), "nothing below {folder}");
    found
}

/// Functions that decide receive `now` as an argument. The listed files read a monotonic clock for
/// other purposes: time limits of waits, the stopwatch, and the sweep of quota leases.
#[test]
fn what_decides_reads_no_clock() {
    const WAIT: [&str; 6] = [
        "crates/tollgate-stores/src/failover_replay/pass.rs",
        "crates/tollgate-stores/src/quota_lease/sweeper.rs",
        "crates/tollgate/src/clock.rs",
        "crates/tollgate/src/limiter/queue.rs",
        "crates/tollgate/src/limiter/unpaid.rs",
        "crates/tollgate/src/rate_limiter/wait.rs",
    ];
    let decides = [
        "crates/tollgate-core/src/",
        "crates/tollgate/src/",
        "crates/tollgate-stores/src/",
        "crates/tollgate-policy/src/",
    ];
    let files = decides.iter().flat_map(|folder| shipped_below(folder));
    let reads = files.filter(|(_, text)| text.contains("Instant::now"));
    let mut readers: Vec<_> = reads.map(|(name, _)| name).collect();
    readers.sort();
    assert_eq!(readers, WAIT, "files that call Instant::now (left), and those that may (right)");
}

/// `CellStep` is private to the core. Only code that names this trait can execute an algorithm.
#[test]
fn only_decide_carries_out_the_step_of_an_algorithm() {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    let files = shipped_below("crates/tollgate-core/src/").into_iter();
    let outside = files.filter(|(name, _)| !name.starts_with("crates/tollgate-core/src/algo/"));
    let named =
        outside.filter(|(_, text)| text.split(|it| !is_word(it)).any(|word| word == "CellStep"));
    let named: Vec<_> = named.map(|(name, _)| name).collect();
    assert_eq!(named, ["crates/tollgate-core/src/decide.rs"]);
    let algo = fs::read_to_string(root().join("crates/tollgate-core/src/algo/mod.rs")).unwrap();
    assert!(
        algo.contains("pub(crate) trait CellStep {"),
        "the step can be named outside of the core"
    );
}

#[test]
fn a_store_needs_one_method() {
    let store = fs::read_to_string(root().join("crates/tollgate-core/src/store.rs")).unwrap();
    let store = code(&store);
    let (_, body) = store.split_once("pub trait Store").unwrap();
    let (body, _) = body.split_once("\n}").unwrap();
    let names = body.split("fn ").skip(1).map(|rest| rest.split('(').next().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["apply", "apply_at_once"]);
    // The second is the first without a future, and has a default.
    assert!(body.trim_end().ends_with("None\n    }"), "{body}");
}
