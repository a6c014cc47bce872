//! Tests of the links in every Markdown file of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders with built or downloaded files.
const NOT_OURS: [&str; 2] = ["target", "node_modules"];

/// The start of the web address of files in the repository, which pages of the guide use.
const REPOSITORY: &str = "https://github.com/tollgate-rs/tollgate/blob/main/";

#[test]
fn every_link_into_the_repository_points_to_an_existing_file() {
    let root = root();
    let mut checked = 0;
    let mut broken = Vec::new();
    for page in pages(&root) {
        let text = fs::read_to_string(&page).expect("a page is readable UTF-8");
        let folder = page.parent().expect("a file is in a folder");
        for target in links(&text).filter_map(file_of) {
            checked += 1;
            let file = target.strip_prefix(REPOSITORY).map(|path| root.join(path));
            if !file.unwrap_or_else(|| folder.join(target)).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(checked > 20, "only {checked} links found: is this the repository?");
    assert!(broken.is_empty(), "links to nothing: {broken:#?}");
}

/// The pages of the guide are built as a book, which contains no other files of the repository.
#[test]
fn no_link_of_the_guide_leaves_the_built_book() {
    let guide = root().join("docs");
    let mut leaving = Vec::new();
    for page in pages(&guide) {
        let text = fs::read_to_string(&page).expect("a page is readable UTF-8");
        let folder = page.parent().expect("a file is in a folder");
        for target in links(&text).filter_map(file_of).filter(|it| !it.starts_with(REPOSITORY)) {
            if !folder.join(target).canonicalize().is_ok_and(|file| file.starts_with(&guide)) {
                leaving.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(leaving.is_empty(), "begin these links with {REPOSITORY}: {leaving:#?}");
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let (_, rest) = page.split_once("## The path of a request").expect("the path of a request");
    let (tables, _) = rest.split_once("## Stores around stores").expect("the next section");
    let rows = tables.lines().filter(|line| line.starts_with("| "));
    let named: Vec<_> = rows.flat_map(named_in).collect();
    let missing: Vec<_> = named.iter().filter(|(_, found)| found.is_none()).collect();
    assert!(named.len() > 60, "only {} paths found: is this the page?", named.len());
    assert!(missing.is_empty(), "in ARCHITECTURE.md and not in the tree: {missing:?}");
}

/// The page states through how many files a request passes, and its table names each of them once.
#[test]
fn the_architecture_counts_the_files_of_a_request() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let (_, rest) = page.split_once("| step | files |").expect("the path of a request");
    let rows = rest.lines().skip(1).take_while(|line| line.starts_with("| "));
    let rows: Vec<_> = rows.filter(|row| !row.starts_with("| ---")).collect();
    let files = |other_store: &str| {
        let of_path = rows.iter().filter(|row| !row.starts_with(other_store));
        let named = of_path.flat_map(|row| named_in(row)).filter_map(|(_, found)| found);
        let mut files: Vec<_> = named.collect();
        let count = files.len();
        files.sort();
        files.dedup();
        assert_eq!(files.len(), count, "files that the table names twice");
        count
    };
    let (memory, redis) = (files("| Redis:"), files("| Memory store:"));
    assert!(memory > 40 && redis > memory, "is this the table? {memory} and {redis} files");
    let stated = format!(
        "With the memory store, this request passes through {memory} files. With Redis it passes \
         through {redis}."
    );
    let words: Vec<_> = page.split_whitespace().collect();
    assert!(words.join(" ").contains(&stated), "not in ARCHITECTURE.md: {stated}");
}

/// Returns the paths that a row of the page names, and for each the file or folder. A file name
/// without a folder belongs to the folder of the previous file, or to a folder above it.
fn named_in(row: &str) -> Vec<(&str, Option<PathBuf>)> {
    let crates = root().join("crates");
    let mut folder = crates.clone();
    let paths = row.split('`').skip(1).step_by(2);
    let is_path = |path: &&str| [".rs", ".lua", "/"].iter().any(|end| path.ends_with(end));
    paths
        .filter(is_path)
        .map(|path| {
            let above = folder.ancestors().take_while(|folder| folder.starts_with(&crates));
            let found = above.map(|folder| folder.join(path)).find(|found| found.exists());
            if let Some(found) = &found {
                let parent = found.parent().unwrap_or(&crates);
                folder = if path.ends_with('/') { found } else { parent }.to_owned();
            }
            (path, found)
        })
        .collect()
}

#[test]
fn links_are_found_where_a_reader_sees_them() {
    let page = "[a](b.md) `[c](d)` ![e](f.png \"title\")\n```rust\n#[cfg](no)\n```\n[g](h.md#part)";
    assert_eq!(links(page).collect::<Vec<_>>(), ["b.md", "f.png", "h.md#part"]);
    let page = "`trusted:\ntrue` [`a`](b.md) [c `d\ne`](f.md)\n\na stray ` mark\n\n[g](h.md)";
    assert_eq!(links(page).collect::<Vec<_>>(), ["b.md", "f.md", "h.md"]);
    assert_eq!(file_of("h.md#part"), Some("h.md"));
    assert_eq!(file_of("#part"), None);
    let file = format!("{REPOSITORY}test");
    assert_eq!(file_of(&format!("{file}#part")), Some(file.as_str()));
    assert_eq!(file_of("https://docs.rs/tower"), None);
    assert_eq!(file_of("mailto:a@example.com"), None);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Returns every Markdown file below `root`, except in hidden folders and [`NOT_OURS`].
fn pages(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            // The code reads the type of the entry itself and does not follow symbolic links,
            // because the target of a link is found under its own path.
            let Ok(kind) = entry.file_type() else { continue };
            let is_folder = kind.is_dir();
            if is_folder && !name.starts_with('.') && !NOT_OURS.contains(&&*name) {
                folders.push(path);
            } else if kind.is_file() && name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    found
}

/// Returns the targets of the inline links of a page, outside of code.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    let mut is_code = false;
    let prose = page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    // Backticks separate text and code, including across the lines of a paragraph. The text of a
    // link may be code as well, so a link counts if its target starts outside of code.
    let text = prose.flat_map(move |line| {
        is_code &= !line.trim().is_empty();
        let pieces: Vec<_> = line.split('`').collect();
        let first = usize::from(is_code);
        is_code ^= pieces.len() % 2 == 0;
        pieces.into_iter().skip(first).step_by(2)
    });
    text.flat_map(|text| {
        let targets = text.split("](").skip(1);
        targets.filter_map(|rest| rest.split([')', ' ']).next()).filter(|target| !target.is_empty())
    })
}

/// Returns the file that a link points to, without its fragment. Returns `None` if the link points
/// outside the repository or to its own page.
fn file_of(target: &str) -> Option<&str> {
    let is_ours = target.starts_with(REPOSITORY);
    let is_elsewhere = !is_ours && target.contains("://") || target.starts_with("mailto:");
    let file = target.split('#').next().unwrap_or(target);
    (!is_elsewhere && !file.is_empty()).then_some(file)
}
