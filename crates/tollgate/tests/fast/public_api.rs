//! A test that compares the public interface that semantic versioning covers with a committed list.
//!
//! `UPDATE=1 cargo test -p tollgate --features axum --test fast public_api` rewrites the list.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The stable modules. Their `pub use` lines name the public items of all other modules.
const MODULES: [&str; 5] = ["lib", "quota", "rate_limit_layer", "rate_limiter", "request_limiter"];

#[test]
fn the_public_interface_is_the_one_that_is_committed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = String::new();
    for module in MODULES {
        for file in files(&root.join("src"), module) {
            let name = file.strip_prefix(root.join("src")).unwrap().display().to_string();
            let items = items(&fs::read_to_string(&file).unwrap());
            if !items.is_empty() {
                writeln!(found, "# {name}\n{}\n", items.join("\n")).unwrap();
            }
        }
    }
    let list = root.join("public-api.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&list, &found).unwrap();
    }
    let committed = fs::read_to_string(&list).unwrap_or_default();
    let differing = committed.lines().zip(found.lines()).find(|(old, new)| old != new);
    assert_eq!(differing, None, "the public interface changed: see the first lines of this file");
    assert_eq!(committed, found, "the public interface changed: see the first lines of this file");
}

/// The mark in `docs/library.md` after which the page lists the crates whose types are in the
/// public interface. The list ends with the paragraph.
const MARK: &str = "<!-- external types, checked by a test -->";

#[test]
fn the_external_types_of_the_interface_are_the_listed_ones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    for file in MODULES.iter().flat_map(|module| files(&root.join("src"), module)) {
        let text = fs::read_to_string(&file).unwrap();
        let items = items(&text).join("\n");
        let names: BTreeSet<&str> = words(&items).collect();
        found.extend(
            imports(&text)
                .filter(|(origin, name)| names.contains(name) || names.contains(origin))
                .map(|(origin, _)| origin.to_owned()),
        );
        found.extend(
            ["axum", "http", "tower_layer", "tower_service", "tollgate_core"]
                .into_iter()
                .filter(|origin| names.contains(origin))
                .map(str::to_owned),
        );
    }
    let page = fs::read_to_string(root.join("docs/library.md")).unwrap();
    let (_, list) = page.split_once(MARK).unwrap();
    let listed: BTreeSet<String> = list
        .trim_start()
        .lines()
        .map_while(|line| line.strip_prefix("- `")?.strip_suffix('`'))
        .map(str::to_owned)
        .collect();
    assert_eq!(found, listed, "docs/library.md lists other crates than the interface has types of");
}

/// Returns each name that `text` imports from another crate, after the name of the crate.
fn imports(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let own = ["crate", "super", "self", "std", "core", "pub"];
    let statements = text.split("\nuse ").skip(1).filter_map(|rest| rest.split_once(';'));
    statements.flat_map(move |(statement, _)| {
        let origin = words(statement).next().unwrap_or_default();
        let is_module = text.contains(&format!("\nmod {origin};"));
        let is_external = !own.contains(&origin) && !is_module;
        words(statement).skip(1).filter(move |_| is_external).map(move |name| (origin, name))
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|it| !it.is_empty())
}

/// Returns the file of `module` and the files in the module's folder.
fn files(source: &Path, module: &str) -> Vec<PathBuf> {
    let mut files = vec![source.join(module).with_extension("rs")];
    if let Ok(folder) = fs::read_dir(source.join(module)) {
        let mut inside: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        inside.sort();
        files.extend(inside);
    }
    files
}

/// Returns the public items of `text`, which rustfmt formatted. A signature is one line, with the
/// `impl` or the trait to which it belongs. Every variant and method of a public enum or trait is
/// listed.
fn items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let mut context: Option<String> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code.starts_with("#[cfg(test)]") {
            break;
        }
        // No build that users make has the items that only the fuzz targets call.
        if code == "#[cfg(fuzzing)]" {
            let _ = lines.find(|line| !line.trim_start().starts_with("#["));
            continue;
        }
        let is_impl = indent == 0 && (code.starts_with("impl") || code.starts_with("unsafe impl"));
        if !is_impl && !code.starts_with("pub ") {
            continue;
        }
        let mut item = code.to_owned();
        while !item.ends_with(['{', ';', '}', ',']) {
            let Some(next) = lines.next() else { break };
            let next = next.trim();
            let joint = if item.ends_with('(') || next.starts_with(')') { "" } else { " " };
            item = format!("{item}{joint}{next}");
        }
        // A list of names over several lines.
        while item.starts_with("pub use") && !item.ends_with(';') {
            item = format!("{item} {}", lines.next().unwrap().trim());
        }
        if is_impl {
            // Implementations of traits are part of the interface; inherent ones are context.
            let is_trait = item.contains(" for ");
            context = (!is_trait).then(|| item.clone());
            if is_trait {
                items.push(item.trim_end_matches(" {").to_owned());
            }
            continue;
        }
        if indent > 0
            && let Some(context) = context.take()
        {
            items.push(context.trim_end_matches(" {").to_owned());
        }
        let has_members = code.starts_with("pub enum") || code.starts_with("pub trait");
        items.push(format!("{}{}", " ".repeat(indent), item.trim_end_matches(" {")));
        if has_members && item.ends_with('{') {
            let members = lines.by_ref().take_while(|line| *line != "}");
            let members = members.filter(|line| {
                let line = line.trim_start();
                !line.is_empty() && !line.starts_with("//") && !line.starts_with("#[")
            });
            items.extend(members.map(str::to_owned));
        }
    }
    items
}
