//! Tests of the page of faults. The tests that the page lists exist, and print their figures with
//! their bounds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The page, and the header of its table.
const PAGE: &str = "docs/chaos.md";
const TABLE: &str = "## Every fault and its tests";
/// The start of the web address of files in the repository.
const REPOSITORY: &str = "https://github.com/tollgate-rs/tollgate/blob/main/";
/// The folder of the scenarios, one per file.
const SCENARIOS: &str = "crates/tollgate-chaos/src/scenarios";
/// The function that a fault test calls, directly or through a function in the same file.
const HOLDS: &str = "assert_held(";
/// The calls in a scenario that show its fault.
const BITES: [&str; 3] = ["Figure::fault_seen(", "Figure::share_seen(", ".fallback_since("];

/// A fault, with the scenarios and tests that show it.
#[derive(Debug, Default)]
struct Fault<'p> {
    scenarios: Vec<&'p str>,
    /// Pairs of a file, relative to the page, and the name of a test in this file.
    tests: Vec<(&'p str, &'p str)>,
}

#[test]
fn every_test_that_the_page_links_holds_its_figures() {
    let page = fs::read_to_string(root().join(PAGE)).expect("the page of faults");
    let mut linked = 0;
    let mut without = Vec::new();
    for (file, test) in faults(&page).into_iter().flat_map(|fault| fault.tests) {
        linked += 1;
        let path = file.strip_prefix(REPOSITORY).expect(file);
        let text = fs::read_to_string(root().join(path)).expect(file);
        if !holds_figures(&text, test) {
            without.push(format!("{file}#{test}"));
        }
    }
    assert!(linked >= 30, "only {linked} tests found: is this the page?");
    assert!(without.is_empty(), "not there, or without figures: {without:#?}");
}

#[test]
fn every_scenario_says_that_its_fault_bites_and_is_on_the_page() {
    let page = fs::read_to_string(root().join(PAGE)).expect("the page of faults");
    let named = faults(&page).into_iter().flat_map(|fault| fault.scenarios);
    let named: BTreeSet<_> = named.map(str::to_owned).collect();
    let mut there = BTreeSet::new();
    for entry in fs::read_dir(root().join(SCENARIOS)).expect("scenarios").flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().replace('_', "-");
        if name != "mod" {
            assert!(page.contains(&format!("`{name}`")), "{name} is not on the page");
            let text = fs::read_to_string(&path).expect("a source file");
            assert!(
                BITES.iter().any(|says| text.contains(says)),
                "{name} does not say that its fault bites"
            );
            there.insert(name);
        }
    }
    let missing: Vec<_> = named.difference(&there).collect();
    assert!(missing.is_empty(), "on the page, and no scenarios: {missing:?}");
}

#[test]
fn every_fault_is_shown() {
    let page = fs::read_to_string(root().join(PAGE)).expect("the page of faults");
    let faults = faults(&page);
    assert!(faults.len() > 20, "only {} faults found: is this the page?", faults.len());
    let by_nothing = faults.iter().filter(|it| it.scenarios.is_empty() && it.tests.is_empty());
    assert_eq!(by_nothing.count(), 0, "{faults:#?}");
}

#[test]
fn a_test_without_figures_is_found() {
    let text = "fn silent() {\n    told(1);\n}\n\nfn told(n: u64) {\n    told(n);\n}\n\n\
                async fn by_another() {\n    shows().await;\n}\n\n\
                async fn shows() {\n    assert_held(&[]);\n}\n";
    assert!(!holds_figures(text, "silent"));
    assert!(!holds_figures(text, "missing"));
    assert!(holds_figures(text, "shows"));
    assert!(holds_figures(text, "by_another"));
}

/// Returns the rows of the page's table.
fn faults(page: &str) -> Vec<Fault<'_>> {
    let (_, table) = page.split_once(TABLE).expect(TABLE);
    let rows = table.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    rows.take_while(|line| line.starts_with('|')).map(fault).collect()
}

fn fault(row: &str) -> Fault<'_> {
    let shown_by = row.trim_matches('|').split('|').nth(1).unwrap_or_default();
    let in_code = shown_by.split('`').skip(1).step_by(2);
    let targets = shown_by.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let tests = targets.filter_map(|target| target.split_once('#'));
    Fault { scenarios: in_code.collect(), tests: tests.collect() }
}

/// Returns whether `test` calls the function of [`HOLDS`], directly or through functions of `text`.
fn holds_figures(text: &str, test: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![test];
    while let Some(name) = open.pop() {
        let Some(body) = body(text, name) else { continue };
        if body.contains(HOLDS) {
            return true;
        }
        if seen.insert(name) {
            open.extend(functions(text).filter(|called| body.contains(&format!("{called}("))));
        }
    }
    false
}

/// Returns the function of this name, from its first line to its closing brace.
fn body<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let at = text.find(&format!("fn {name}("))?;
    let begun = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let indent = text[begun..].len() - text[begun..].trim_start().len();
    let closed = format!("\n{}}}\n", &text[begun..begun + indent]);
    let length = text[at..].find(&closed)?;
    // The function's own name is removed from the text, because it is not a call.
    Some(&text[at..at + length][name.len() + 4..])
}

/// Returns the names of all functions of `text`.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<', ' ']).next())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}
