//! Tests of the page of bounds. The page names only code that exists, and the documentation of each
//! store wrapper states its bound.

mod page;
mod tables;
mod values;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The store wrappers, with the functions that return their bounds.
const WRAPPERS: [(&str, &[&str]); 8] = [
    ("Sharded", &["fair_share"]),
    ("Atomic", &["max_held_units", "max_store_calls"]),
    ("Deadline", &["max_wait"]),
    ("LocalShare", &["max_admitted_units"]),
    ("FailoverReplay", &["max_lost_units"]),
    ("DenyCache", &["max_stale_refusal"]),
    ("Rollout", &["max_over_admission"]),
    ("Rebalance", &["max_over_admission", "max_double_count"]),
];

/// The keywords that precede the name of a definition.
const DEFINES: [&str; 7] = ["fn ", "const ", "static ", "struct ", "enum ", "trait ", "type "];

/// A source file.
struct Source {
    path: PathBuf,
    text: String,
    /// The words of the text. Most names are in few files, and a search of all texts takes long.
    words: HashSet<Box<str>>,
}

#[test]
fn every_bound_that_the_page_names_is_in_the_code() {
    let sources = sources();
    let page = fs::read_to_string(root().join("docs/bounds.md")).expect("the page of bounds");
    let mut named = 0;
    let mut missing = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---")) {
        let said_by = row.trim_matches('|').rsplit('|').next().unwrap_or_default();
        for name in names(said_by) {
            named += 1;
            if !is_there(&sources, name) {
                missing.push(name);
            }
        }
    }
    assert!(named > 30, "only {named} names found: is this the page?");
    assert!(missing.is_empty(), "in docs/bounds.md and not in the code: {missing:?}");
}

#[test]
fn every_wrapper_says_its_bound_in_its_docstring() {
    let sources = sources();
    for (wrapper, bounds) in WRAPPERS {
        let docs = docstring(&sources, wrapper).unwrap_or_else(|| panic!("no struct {wrapper}"));
        for bound in bounds {
            assert!(docs.contains(bound), "{wrapper} does not speak of {bound}:\n{docs}");
            assert!(is_there(&sources, bound), "no {bound}");
        }
    }
}

#[test]
fn what_is_not_there_is_missed() {
    let sources = sources();
    assert!(is_there(&sources, "LocalShare::max_admitted_units"));
    assert!(!is_there(&sources, "LocalShare::admits_at_least"));
    assert!(!is_there(&sources, "Shares::max_admitted_units"));
    assert!(is_there(&sources, "tollgate_stores::rebalance::max_over_admission"));
    assert!(!is_there(&sources, "tollgate_stores::sharded::max_over_admission"));
    assert_eq!(names("`a`, [`b`](c.md) and `d e`; `F`").collect::<Vec<_>>(), ["a", "F"]);
}

/// Returns the names of code in a cell. Policy keys contain dots and are skipped, and links are
/// checked elsewhere.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    let is_name = |text: &&str| {
        text.chars().all(|char| char.is_ascii_alphanumeric() || "_:/.".contains(char))
            && (!text.contains('.') || text.ends_with(".rs"))
    };
    let pieces: Vec<_> = cell.split('`').collect();
    let in_code = (1..pieces.len()).step_by(2).filter(|place| !pieces[place - 1].ends_with('['));
    let found: Vec<_> = in_code.map(|place| pieces[place]).filter(is_name).collect();
    found.into_iter()
}

/// Returns whether the code defines `name`. `Type::name` must be defined in a file that contains
/// the type, and `module::name` in a file or folder of the module.
fn is_there(sources: &[Source], name: &str) -> bool {
    if name.ends_with(".rs") {
        return sources.iter().any(|source| source.path.ends_with(name));
    }
    let mut parts = name.rsplit("::");
    let last = parts.next().unwrap_or(name);
    let of = parts.next();
    sources.iter().filter(|source| source.words.contains(last)).any(|source| {
        let belongs = of.is_none_or(|of| match of.starts_with(char::is_uppercase) {
            true => words(&source.text, of, &["struct ", "enum "]) || implements(&source.text, of),
            false => source.path.components().any(|part| {
                let part = part.as_os_str().to_string_lossy();
                part.trim_end_matches(".rs") == of
            }),
        });
        belongs && (words(&source.text, last, &DEFINES) || is_field(&source.text, last))
    })
}

/// Returns whether `text` contains one of the texts `before`, directly followed by `name` as a
/// whole word.
fn words(text: &str, name: &str, before: &[&str]) -> bool {
    before.iter().any(|before| {
        let defined = format!("{before}{name}");
        let found = text.match_indices(&defined);
        let mut ends = found.map(|(at, found)| text[at + found.len()..].chars().next());
        ends.any(|next| next.is_none_or(|next| !next.is_alphanumeric() && next != '_'))
    })
}

fn implements(text: &str, name: &str) -> bool {
    text.lines().filter(|line| line.starts_with("impl")).any(|line| words(line, name, &[" "]))
}

fn is_field(text: &str, name: &str) -> bool {
    text.contains(&format!("pub {name}: "))
}

/// Returns the documentation of the wrapper of this name.
fn docstring(sources: &[Source], name: &str) -> Option<String> {
    let wrappers = root().join("crates/tollgate-stores");
    sources.iter().filter(|source| source.path.starts_with(&wrappers)).find_map(|source| {
        let lines: Vec<_> = source.text.lines().collect();
        let is_it = |line: &&str| line.starts_with("pub struct") && words(line, name, &["struct "]);
        let at = lines.iter().position(is_it)?;
        let above = lines[..at].iter().rev();
        let above = above.take_while(|line| line.starts_with("///") || line.starts_with("#["));
        Some(above.copied().collect::<Vec<_>>().join("\n"))
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Returns every source file of every crate.
fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    let crates = fs::read_dir(root().join("crates")).expect("the crates").flatten();
    let mut folders: Vec<_> = crates.map(|entry| entry.path().join("src")).collect();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is UTF-8");
                let words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
                let words = words.map(Box::from).collect();
                found.push(Source { path, text, words });
            }
        }
    }
    found
}
