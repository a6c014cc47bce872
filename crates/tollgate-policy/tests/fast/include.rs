//! Policies that consist of several files.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tollgate_policy::{load, named_files, parse};

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn message(folder: &Path) -> String {
    let message = load(&folder.join("shop.yaml")).unwrap_err().to_string();
    message.replace(&format!("{}/", folder.display()), "")
}

const MAIN: &str = "
include: [teams/search.yaml, exempt.yaml]
subjects: { user: { header: x-user } }
limits: { core: { quota: 5, window: 1h } }
rules: [{ name: all, limits: core }]
answers: { refuse: { status: 403 } }
";
const SEARCH: &str = "
limits: { search: { quota: 2, window: 1m, per: user } }
rules: [{ name: search, match: { path: /search, has: user }, limits: [search, core] }]
";
const EXEMPT: &str = "
networks: { office: { file: lists/office.txt } }
rules: [{ name: exempt, match: { network: office }, limits: [] }]
";

#[test]
fn files_are_one_policy() {
    let folder = folder(&[
        ("shop.yaml", MAIN),
        ("teams/search.yaml", SEARCH),
        ("exempt.yaml", EXEMPT),
        ("lists/office.txt", "192.0.2.0/24"),
    ]);
    let path = folder.path().join("shop.yaml");
    let loaded = load(&path).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let rules: Vec<&str> = loaded.policy.rules().iter().map(|rule| &*rule.name).collect();
    assert_eq!(rules, ["search", "exempt", "all"]);
    let limits: Vec<&str> = loaded.policy.limits().iter().map(|one| one.limit.name()).collect();
    assert_eq!(limits, ["search", "core"]);
    assert_eq!(loaded.policy.answers().refuse_status, 403);
    let named = named_files(&path, MAIN.as_bytes());
    let names = ["teams/search.yaml", "exempt.yaml", "lists/office.txt"];
    assert_eq!(named, names.map(|name| folder.path().join(name)));

    fs::write(folder.path().join("teams/search.yaml"), SEARCH.replace("2,", "3,")).unwrap();
    assert_ne!(load(&path).unwrap().version, loaded.version);
}

#[test]
fn a_mistake_is_reported_in_its_file() {
    let search = "limits:\n  core: { quota: 1, window: 1h }\n  a: { quota: 1, window: 1 }\nrules: [{ limits: [b] }]\nanswers: {}\n";
    let folder =
        folder(&[("shop.yaml", &MAIN.replace(", exempt.yaml", "")), ("teams/search.yaml", search)]);
    let expected = "\
shop.yaml:6:1: \"answers\" is in two files
  |
6 | answers: { refuse: { status: 403 } }
  | ^^^^^^^ also in teams/search.yaml, line 5

1 mistake in shop.yaml";
    assert_eq!(message(folder.path()), expected);
    fs::write(folder.path().join("teams/search.yaml"), search.replace("answers: {}\n", ""))
        .unwrap();
    let message = message(folder.path());
    let places: Vec<&str> = message.lines().filter(|line| line.contains(".yaml:")).collect();
    let starts = [
        "shop.yaml:4:11: duplicate key \"core\"",
        "teams/search.yaml:3:26: expected a duration",
        "teams/search.yaml:4:20: unknown limit \"b\"",
    ];
    assert_eq!(places.len(), starts.len(), "{message}");
    assert!(places.iter().zip(starts).all(|(place, start)| place.starts_with(start)), "{message}");
    assert!(message.contains("^^^^ first in teams/search.yaml, line 2"), "{message}");
    assert!(message.contains("3 |   a: { quota: 1, window: 1 }"), "{message}");
}

#[test]
fn what_cannot_be_included_is_explained() {
    for (included, expected) in [
        (None, "cannot read"),
        (Some("include: a.yaml"), "an included file includes another"),
        (Some("- a"), "this file has no keys"),
        (Some(""), "the file is empty"),
        (Some("rules: {"), "not YAML"),
        (Some("rules: { a: 1 }"), "\"rules\" is in two files"),
        (Some("limits: {}\nlimits: {}"), "duplicate key \"limits\""),
        (Some("a: 1"), "unknown key \"a\""),
    ] {
        let main = MAIN.replace("[teams/search.yaml, exempt.yaml]", "other.yaml");
        let files = [("shop.yaml", &*main), ("other.yaml", included.unwrap_or_default())];
        let folder = folder(&files[..1 + usize::from(included.is_some())]);
        let message = message(folder.path());
        assert!(message.contains(expected), "{included:?}: {message}");
    }
    let many = (0..65).map(|number| format!("{number}.yaml")).collect::<Vec<_>>().join(", ");
    let folder = folder(&[("shop.yaml", &MAIN.replace("teams/search.yaml", &many))]);
    assert!(message(folder.path()).contains("a policy of 67 files"));
    let refused = parse("text", MAIN).unwrap_err().to_string();
    assert!(refused.contains("files are only read for a policy that is a file"), "{refused}");
}
