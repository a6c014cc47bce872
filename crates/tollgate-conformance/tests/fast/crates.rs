//! Tests of the crates. Their dependencies agree with `ARCHITECTURE.md`, and each dependency is
//! used.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::source::{code, crates, root, shipped};

/// Returns the output of `cargo`.
fn cargo(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO")).current_dir(root()).args(arguments).output().expect("cargo");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the manifest data of each crate.
fn packages() -> Vec<Value> {
    let metadata =
        cargo(&["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// Returns the dependencies of `package`: the name of each dependency, and whether it is a normal,
/// development or build dependency.
fn dependencies(package: &Value) -> impl Iterator<Item = (&str, &str)> {
    let all = package["dependencies"].as_array().expect("dependencies");
    all.iter()
        .map(|it| (it["name"].as_str().expect("a name"), it["kind"].as_str().unwrap_or("normal")))
}

/// Returns the dependencies of each crate that are crates of this repository.
fn own(kinds: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let packages = packages();
    let name = |package: &Value| package["name"].as_str().expect("a name").to_owned();
    let names: BTreeSet<_> = packages.iter().map(name).collect();
    let used = |package: &Value| {
        let used = dependencies(package).filter(|(_, kind)| kinds.contains(kind));
        // A crate that names itself enables its own features for its tests.
        let of_others = |it: &String| names.contains(it) && *it != name(package);
        used.map(|(name, _)| name.to_owned()).filter(of_others).collect()
    };
    packages.iter().map(|package| (name(package), used(package))).collect()
}

#[test]
fn the_table_of_crates_says_what_each_depends_on() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let (_, table) = page.split_once("| crate | uses |\n").expect("the table of crates");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let metadata: BTreeMap<_, _> = rows
        .map(|row| {
            let mut names = row.split('`').skip(1).step_by(2).map(str::to_owned);
            (names.next().expect("a crate"), names.collect())
        })
        .collect();
    assert_eq!(metadata, own(&["normal"]), "ARCHITECTURE.md (left) and the manifests (right)");
}

#[test]
fn no_circle_is_among_crates_even_by_their_tests() {
    let mut left = own(&["normal", "dev", "build"]);
    while let Some(lowest) =
        left.iter().find(|(_, uses)| uses.is_empty()).map(|(name, _)| name.clone())
    {
        left.remove(&lowest);
        left.values_mut().for_each(|uses| uses.retain(|name| *name != lowest));
    }
    assert!(left.is_empty(), "in a circle, or above one: {left:#?}");
}

/// Only listeners, the policy file and reports use serde.
#[test]
fn limits_stores_and_the_proxy_are_built_without_serde() {
    for name in [
        "tollgate-core",
        "tollgate",
        "tollgate-stores",
        "tollgate-redis",
        "tollgate-memcached",
        "tollgate-http",
        "tollgate-proxy",
    ] {
        let tree = cargo(&[
            "tree",
            "--offline",
            "--locked",
            "-p",
            name,
            "-e",
            "normal",
            "--prefix",
            "none",
        ]);
        let serde: Vec<_> = tree.lines().filter(|line| line.starts_with("serde")).collect();
        assert!(tree.lines().count() > 0 && serde.is_empty(), "{name}: {serde:?}");
    }
}

/// Each crate has one test binary for fast tests and one for slow tests. Tests that need a separate
/// process have their own binary.
#[test]
fn plain_cargo_test_leaves_out_the_slow_tests_alone() {
    for package in packages() {
        for target in package["targets"].as_array().expect("targets") {
            if target["kind"][0] != "test" {
                continue;
            }
            let name = target["name"].as_str().expect("a name");
            assert!(matches!(name, "fast" | "slow") || name.ends_with("_memory"), "{target}");
            assert_eq!(target["test"], name != "slow", "{target}");
        }
    }
}

/// Shipped code uses every normal dependency. Any code may use the other dependencies.
#[test]
fn every_dependency_is_named_in_the_source() {
    let folders: BTreeMap<_, _> = crates().into_iter().collect();
    let mut unused = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        let all = gather(&folders[name], &str::to_owned);
        let ships = gather(&folders[name].join("src"), &shipped);
        for (dependency, kind) in dependencies(&package) {
            let text = if kind == "normal" { &ships } else { &all };
            let is_named = names(text, &dependency.replace('-', "_"));
            if !is_named && !NAMED_ELSEWHERE.contains(&(name, dependency)) {
                unused.push(format!("{name}: {dependency} ({kind})"));
            }
        }
    }
    assert!(unused.is_empty(), "depended on, and named nowhere: {unused:#?}");
}

/// Dependencies that the code of a crate does not name, for one of three reasons. Generated code
/// names the dependency, test modules in the folder of another crate name it, or `tollgate-sim`
/// depends on a crate of this workspace only to enable the feature `simulation`.
const NAMED_ELSEWHERE: [(&str, &str); 11] = [
    ("tollgate-backend", "rcgen"),
    ("tollgate-backend", "tollgate-core"),
    ("tollgate-cli", "tollgate-core"),
    ("tollgate-module", "rcgen"),
    ("tollgate-module", "tempfile"),
    ("tollgate-server", "tonic-prost"),
    ("tollgate-sim", "tollgate-memcached"),
    ("tollgate-sim", "tollgate-redis"),
    ("tollgate-stores", "bytes"),
    ("tollgate-stores", "http-body-util"),
    ("tollgate-stores", "tower"),
];

/// Returns whether `text` names the crate `word` in a path, a `use` or a macro.
fn names(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = &text[at + word.len()..];
        let begins = !before.is_some_and(|it| it.is_alphanumeric() || "_:.".contains(it));
        begins && ["::", ";", " as "].iter().any(|next| after.starts_with(next))
    })
}

/// Returns the concatenation of the texts that `part` returns for the Rust files below `folder`.
fn gather(folder: &Path, part: &impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            text += &gather(&path, part);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text += &part(&code(&fs::read_to_string(path).expect("a source file")));
        }
    }
    text
}
