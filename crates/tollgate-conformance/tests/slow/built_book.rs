//! A test that mdBook builds the guide, and that every link of the built pages has a target in
//! these pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The pages that mdBook adds. Their links are relative to other pages.
const ADDED: [&str; 3] = ["print.html", "404.html", "toc.html"];

/// A built page.
struct Page {
    /// The path of the page in the book.
    path: PathBuf,
    ids: BTreeSet<String>,
    links: Vec<String>,
}

#[test]
fn every_link_of_the_built_book_has_a_target_in_it() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let book = tempfile::tempdir().expect("a folder");
    let output = Command::new("mdbook").arg("build").arg(&docs).arg("-d").arg(book.path()).output();
    let output = output.unwrap_or_else(|error| panic!("mdbook: {error}; ./test installs it"));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    let is_fine = |line: &str| !line.contains("WARN") && !line.contains("ERROR");
    assert!(printed.lines().all(is_fine), "{printed}");

    let pages = pages(book.path());
    let ids: BTreeMap<_, _> = pages.iter().map(|page| (&page.path, &page.ids)).collect();
    let mut checked = 0;
    let mut broken = Vec::new();
    for page in pages.iter().filter(|page| !ADDED.contains(&&*page.path.to_string_lossy())) {
        for link in &page.links {
            checked += 1;
            let (file, id) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => Some(page.path.clone()),
                file => within(page.path.parent().unwrap_or_else(|| Path::new("")), file),
            };
            let is_there = target.is_some_and(|target| {
                let has_id = || ids.get(&target).is_none_or(|ids| ids.contains(id));
                book.path().join(&target).exists() && (id.is_empty() || has_id())
            });
            if !is_there {
                broken.push(format!("{}: {link}", page.path.display()));
            }
        }
    }
    assert!(pages.len() > 50 && checked > 1_000, "{checked} links of {} pages", pages.len());
    assert!(broken.is_empty(), "links to nothing: {broken:#?}");
}

#[test]
fn links_and_ids_are_read_from_tags_only() {
    let page = "<h2 id=\"a\">x</h2><a href=\"b.html#c\">y</a><img src='d.png'>\
                <a href=\"https://docs.rs\">z</a><code>&lt;a href=\"no\"&gt;</code>";
    assert_eq!(attributes(page, "id"), ["a"]);
    assert_eq!(links(page), ["b.html#c", "d.png"]);
    assert_eq!(within(Path::new("design"), "../a.html"), Some(PathBuf::from("a.html")));
    assert_eq!(within(Path::new(""), "../policies/a.yaml"), None);
}

/// Returns every page of the book.
fn pages(book: &Path) -> Vec<Page> {
    let mut found = Vec::new();
    let mut folders = vec![book.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "html") {
                let text = fs::read_to_string(&path).expect("a page is UTF-8");
                let path = path.strip_prefix(book).expect("a path in the book").to_owned();
                let ids = attributes(&text, "id").into_iter().collect();
                found.push(Page { path, ids, links: links(&text) });
            }
        }
    }
    found
}

/// Returns the targets of links and images, except targets on other hosts.
fn links(page: &str) -> Vec<String> {
    let all = ["href", "src"].into_iter().flat_map(|name| attributes(page, name));
    let is_here = |link: &String| !link.contains("://") && !link.starts_with("mailto:");
    all.filter(is_here).collect()
}

/// Returns the values of an attribute in all tags of a page.
fn attributes(page: &str, name: &str) -> Vec<String> {
    let tags = page.split('<').skip(1).filter_map(|rest| rest.split_once('>').map(|(tag, _)| tag));
    let values = tags.filter_map(|tag| {
        let (_, rest) = tag.split_once(&format!(" {name}="))?;
        let quote = rest.chars().next().filter(|char| matches!(char, '"' | '\''))?;
        let (value, _) = rest[1..].split_once(quote)?;
        Some(value.replace("&amp;", "&"))
    });
    values.collect()
}

/// Returns the path of `file` in the book. Returns `None` if `file` is outside of the book.
fn within(folder: &Path, file: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(path)
}
