//! Tests of the guide's table of contents. The table lists every page exactly once, and every
//! listed page exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns the pages in the table of contents, in the order of the table.
fn listed() -> Vec<String> {
    let summary = fs::read_to_string(docs().join("SUMMARY.md")).unwrap();
    let entries = summary.lines().filter(|line| line.trim_start().starts_with("- "));
    let entries = entries.map(|line| {
        let (title, rest) = line.trim_start().strip_prefix("- [")?.split_once("](")?;
        let page = rest.strip_suffix(')')?;
        (!title.is_empty() && !page.is_empty()).then(|| page.to_owned())
    });
    entries.map(|page| page.expect("an entry is `- [Title](page.md)`")).collect()
}

/// Returns the pages that exist in the folder of the guide.
fn written() -> BTreeSet<String> {
    let of = |folder: &str| {
        let entries = fs::read_dir(docs().join(folder)).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let folder = folder.to_owned();
        names.filter(|name| name.ends_with(".md")).map(move |name| format!("{folder}{name}"))
    };
    of("").chain(of("design/")).filter(|page| page != "SUMMARY.md").collect()
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let listed = listed();
    let once: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice: {listed:?}");
    let written = written();
    let missing: Vec<_> = written.difference(&once).collect();
    let gone: Vec<_> = once.difference(&written).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
    assert!(gone.is_empty(), "in docs/SUMMARY.md, and not there: {gone:?}");
}

#[test]
fn every_page_begins_with_its_only_title() {
    for page in written() {
        let text = fs::read_to_string(docs().join(&page)).unwrap();
        let mut fenced = false;
        let titles = text.lines().filter(|line| {
            fenced ^= line.starts_with("```");
            !fenced && line.starts_with("# ")
        });
        assert_eq!(titles.count(), 1, "{page}");
        assert!(text.starts_with("# "), "{page}");
    }
}
