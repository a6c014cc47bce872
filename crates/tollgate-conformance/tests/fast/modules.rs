//! Tests that the modules of every crate use each other without cycles. The uses are read from the
//! source.
//!
//! Sibling modules are compared: the modules of a crate, and the modules of each folder. A use by a
//! child of a module counts as a use by the module. A re-exported item belongs to the module that
//! defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::source::{code, crates, shipped};

/// The path of a module in its crate, such as `["http", "app"]`. The path of the crate's root is
/// empty.
type Name = Vec<String>;

#[derive(Debug, Default)]
struct Modules {
    /// The code of each module, excluding tests.
    code: BTreeMap<Name, String>,
    /// The imports of each module: for each imported name, the path of the item.
    imports: BTreeMap<Name, BTreeMap<String, Vec<String>>>,
    /// The names of modules with files in another crate.
    foreign: BTreeSet<String>,
}

#[test]
fn no_circle_is_among_modules() {
    let mut circles = Vec::new();
    for (name, folder) in crates() {
        let modules = Modules::read(&folder.join("src"));
        let place = |parent: &[String]| [std::slice::from_ref(&name), parent].concat().join("::");
        circles
            .extend(modules.circles().into_iter().map(|(parent, circle)| (place(&parent), circle)));
    }
    assert!(circles.is_empty(), "modules that import each other in a circle: {circles:#?}");
}

/// The modules of `tollgate-redis` that send jobs handle one server. Other modules choose the
/// server.
#[test]
fn batchers_links_and_keys_know_neither_the_topology_nor_the_cluster() {
    const BELOW: [&str; 5] = ["batcher", "connection", "key", "link", "members"];
    const ABOVE: [&str; 2] = ["cluster", "topology"];
    let folder =
        crates().into_iter().find(|(name, _)| name == "tollgate-redis").expect("a crate").1;
    let modules = Modules::read(&folder.join("src"));
    for name in BELOW.iter().chain(&ABOVE) {
        assert!(modules.code.contains_key(&vec![(*name).to_owned()]), "no module {name}");
    }
    let is_of = |name: &[String], of: &[&str]| name.first().is_some_and(|it| of.contains(&&**it));
    let mut uses = Vec::new();
    for name in modules.code.keys().filter(|name| is_of(name, &BELOW)) {
        let used =
            modules.paths(name).into_iter().filter_map(|path| modules.definer(name, &path, 8));
        uses.extend(used.filter(|used| is_of(used, &ABOVE)).map(|used| (name.clone(), used)));
    }
    assert!(uses.is_empty(), "imports that point up: {uses:?}");
}

/// The root of a crate declares all modules of the crate and re-exports their items. A module
/// therefore imports an item from the module that defines the item, never through the root.
#[test]
fn no_import_points_up_to_the_root_of_a_crate() {
    let mut upward = Vec::new();
    for (name, folder) in crates() {
        let modules = Modules::read(&folder.join("src"));
        let describe =
            |(module, path): (Name, String)| format!("{name}::{}: {path}", module.join("::"));
        upward.extend(modules.upward().into_iter().map(describe));
    }
    assert!(upward.is_empty(), "imports from the root of the own crate: {upward:#?}");
}

/// The most layers of modules in a crate. A module is one layer above the highest module that it
/// uses.
const FLOORS: [(&str, usize); 2] = [("tollgate-backend", 6), ("tollgate-stores", 6)];

#[test]
fn crates_that_compose_stores_have_few_floors() {
    for (name, most) in FLOORS {
        let (_, folder) = crates().into_iter().find(|(other, _)| other == name).expect("the crate");
        let modules = Modules::read(&folder.join("src"));
        let uses = modules.siblings().remove(&Name::new()).expect("modules");
        // The root is one layer above all of its modules.
        let floors = 1 + uses.keys().map(|module| floor(module, &uses)).max().unwrap_or_default();
        assert!(floors <= most, "{name} has {floors} floors");
    }
}

/// Returns the layer of `module`, starting with 1. The modules must not use each other in a cycle.
fn floor(module: &String, uses: &BTreeMap<String, BTreeSet<String>>) -> usize {
    let below = uses.get(module).into_iter().flatten().filter(|used| *used != module);
    1 + below.map(|used| floor(used, uses)).max().unwrap_or_default()
}

/// Returns `text` without the modules that `#[path]` takes from other crates. The check of the
/// other crate includes these modules.
fn without_foreign_files(text: &str) -> String {
    let mut parts = text.split("#[path");
    let first = parts.next().unwrap_or_default();
    let rest = parts.filter_map(|part| Some(part.split_once(';')?.1));
    std::iter::once(first).chain(rest).collect()
}

impl Modules {
    /// Reads the modules of the library or the program in the folder `src`.
    fn read(src: &Path) -> Self {
        let mut modules = Self::default();
        let root =
            ["lib.rs", "main.rs"].map(|name| src.join(name)).into_iter().find(|it| it.is_file());
        if let Some(root) = root {
            modules.add(Vec::new(), &root, src);
        }
        modules
    }

    /// Adds the module `name`, which `file` contains, and its children in `folder`.
    fn add(&mut self, name: Name, file: &Path, folder: &Path) {
        let text =
            fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let text = shipped(&code(&text));
        let foreign = text.split("#[path").skip(1).filter_map(|part| part.split_once(';'));
        let foreign = foreign.filter_map(|(declared, _)| declared.split("mod ").nth(1));
        self.foreign.extend(foreign.map(|name| name.trim().to_owned()));
        let text = without_foreign_files(&text);
        let mut imports = BTreeMap::new();
        for declared in behind(&text, "use ").filter_map(|rest| rest.split(';').next()) {
            for path in spread(declared) {
                let (path, alias) = match path.split_once(" as ") {
                    Some((path, alias)) => (path.to_owned(), Some(alias.trim().to_owned())),
                    None => (path, None),
                };
                let mut path: Vec<_> = path.split("::").map(|it| it.trim().to_owned()).collect();
                if path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                let last = path.last().cloned().unwrap_or_default();
                imports.insert(alias.unwrap_or(last), path);
            }
        }
        let children = behind(&text, "mod ").filter_map(|rest| rest.split(';').next());
        for child in children.map(str::trim).filter(|child| is_word(child)) {
            let candidates =
                [folder.join(format!("{child}.rs")), folder.join(child).join("mod.rs")];
            let found: Option<&PathBuf> = candidates.iter().find(|it| it.is_file());
            let file = found
                .unwrap_or_else(|| panic!("no file of mod {child} below {}", folder.display()));
            self.add([&*name, &[child.to_owned()]].concat(), file, &folder.join(child));
        }
        self.imports.insert(name.clone(), imports);
        self.code.insert(name, text);
    }

    /// Returns the module that defines the item at `path`, as the module `from` resolves the path.
    /// Returns `None` for items of other crates.
    fn definer(&self, from: &[String], path: &[String], depth: usize) -> Option<Name> {
        let mut at = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "super" => from.split_last()?.1.to_vec(),
            "self" => from.to_vec(),
            first => {
                let child = [from, &[first.to_owned()]].concat();
                if !self.code.contains_key(&child) && !self.imports[from].contains_key(first) {
                    return None;
                }
                return self.below(from.to_vec(), path, depth);
            }
        };
        let mut rest = &path[1..];
        while rest.first().is_some_and(|it| it == "super") {
            (at, rest) = (at.split_last()?.1.to_vec(), &rest[1..]);
        }
        self.below(at, rest, depth)
    }

    /// Returns the module that defines an item like [`Self::definer`], for a path that starts below
    /// the module `at`.
    fn below(&self, mut at: Name, path: &[String], depth: usize) -> Option<Name> {
        for (index, part) in path.iter().enumerate() {
            let child = [&*at, std::slice::from_ref(part)].concat();
            if self.code.contains_key(&child) {
                at = child;
                continue;
            }
            let imported = self.imports[&at].get(part).filter(|_| depth > 0);
            return match imported {
                // `use self::x` under the same name would recurse without end.
                Some(before) if before.len() > 1 => {
                    let whole = [&**before, &path[index + 1..]].concat();
                    self.definer(&at, &whole, depth - 1).or(Some(at))
                }
                _ => Some(self.globbed(&at, part, depth).unwrap_or(at)),
            };
        }
        Some(at)
    }

    /// Returns the child of `at` that defines `item`, if `at` re-exports all items of the child.
    fn globbed(&self, at: &[String], item: &str, depth: usize) -> Option<Name> {
        let path = self.imports[at].get("*").filter(|_| depth > 0)?;
        let child = self.definer(at, &path[..path.len() - 1], depth - 1)?;
        let defines = |kind: &str| self.code[&child].contains(&format!("{kind} {item}"));
        let mut kinds = ["struct", "enum", "trait", "fn", "type", "const"].into_iter();
        kinds.any(defines).then_some(child)
    }

    /// Returns every path in the code of `name` that starts with `crate` or `super`.
    fn paths(&self, name: &[String]) -> Vec<Vec<String>> {
        let imports =
            self.imports[name].values().filter(|path| matches!(&*path[0], "crate" | "super"));
        let mut paths: Vec<Vec<String>> = imports.cloned().collect();
        let code = &self.code[name];
        for begin in ["crate::", "super::"] {
            for (at, _) in code.match_indices(begin) {
                let before = code[..at].chars().next_back();
                let is_first = !before
                    .is_some_and(|it| it.is_alphanumeric() || it == '_' || it == ':' || it == '$');
                let path =
                    code[at..].split(|it: char| !(it.is_alphanumeric() || it == '_' || it == ':'));
                let path = path.take(1).flat_map(|path| path.split("::")).map(str::to_owned);
                if is_first {
                    paths.push(path.filter(|part| !part.is_empty()).collect());
                }
            }
        }
        paths
    }

    /// Returns the imports of items that the root defines, each with the module that imports the
    /// item.
    fn upward(&self) -> BTreeSet<(Name, String)> {
        let mut found = BTreeSet::new();
        for name in self.code.keys().filter(|name| !name.is_empty()) {
            for path in self.paths(name) {
                let supers = path.iter().take_while(|part| *part == "super").count();
                let rest = match path.first().map(String::as_str) {
                    Some("crate") => &path[1..],
                    _ if supers == name.len() => &path[supers..],
                    _ => continue,
                };
                let is_module = |part: &String| {
                    self.code.contains_key(std::slice::from_ref(part))
                        || self.foreign.contains(part)
                };
                if rest.first().is_some_and(|part| !is_module(part)) {
                    found.insert((name.clone(), path.join("::")));
                }
            }
        }
        found
    }

    /// Returns the cycles. Each cycle has the common parent of its modules, and the modules.
    fn circles(&self) -> Vec<(Name, Vec<String>)> {
        let uses = self.siblings();
        let found = uses.iter().flat_map(|(parent, siblings)| {
            circles_among(siblings).into_iter().map(|circle| (parent.clone(), circle))
        });
        found.collect()
    }

    /// Returns the children of each module. Each child has the list of its siblings that it uses.
    fn siblings(&self) -> BTreeMap<Name, BTreeMap<String, BTreeSet<String>>> {
        let mut uses: BTreeMap<Name, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for name in self.code.keys() {
            for path in self.paths(name) {
                let Some(used) = self.definer(name, &path, 8) else { continue };
                let common = name.iter().zip(&used).take_while(|(one, other)| one == other).count();
                // Only siblings are compared. A parent and its child are not.
                if let (Some(one), Some(other)) = (name.get(common), used.get(common)) {
                    let siblings = uses.entry(name[..common].to_vec()).or_default();
                    siblings.entry(one.clone()).or_default().insert(other.clone());
                }
            }
        }
        uses
    }
}

/// Returns, for each occurrence of `keyword` in `code`, the text after it.
fn behind<'c>(code: &'c str, keyword: &'c str) -> impl Iterator<Item = &'c str> {
    let found = code.match_indices(keyword);
    let found = found
        .filter(|(at, _)| !code[..*at].ends_with(|it: char| it.is_alphanumeric() || it == '_'));
    found.map(move |(at, _)| &code[at + keyword.len()..])
}

/// Returns the groups of modules in which every module reaches every other module.
fn circles_among(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reach = |from: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(next) = open.pop() {
            for used in uses.get(next).into_iter().flatten() {
                if seen.insert(used.clone()) {
                    open.push(used);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<_, _> = uses.keys().map(|name| (name, reach(name))).collect();
    let mut groups = BTreeSet::new();
    for (name, all) in &reached {
        let group: Vec<_> = all
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*name)))
            .cloned()
            .collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

/// Returns the paths of a `use` declaration. Braces are expanded.
fn spread(declared: &str) -> Vec<String> {
    let declared = declared.trim();
    let Some(at) = declared.find('{') else { return vec![declared.to_owned()] };
    let inside = declared[at + 1..].strip_suffix('}').unwrap_or_default();
    let (mut depth, mut begin, mut parts) = (0_usize, 0, Vec::new());
    for (index, it) in inside.char_indices() {
        match it {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&inside[begin..index]);
                begin = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[begin..]);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts.flat_map(spread).map(|part| format!("{}{part}", &declared[..at])).collect()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|it| it.is_alphanumeric() || it == '_')
}

#[test]
fn imports_are_spread_out() {
    assert_eq!(
        spread("crate::a::{b, c::{d, e as f}}"),
        ["crate::a::b", "crate::a::c::d", "crate::a::c::e as f"]
    );
}

#[test]
fn a_circle_is_found_among_siblings_and_through_what_a_parent_exports() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::B;\n#[cfg(test)]\nmod none;");
    write("a.rs", "use crate::B; // crate::c::C\npub struct A;");
    write("b.rs", "use super::{a::A, c};\npub struct B(A);");
    write("c/mod.rs", "mod d;\nmod e;\npub use d::D;\npub struct C;");
    write("c/d.rs", "use super::C;\npub struct D(super::e::E);");
    write("c/e.rs", "const TEXT: &str = \"super::d::D\";\npub struct E;");
    let found = Modules::read(folder.path()).circles();
    assert_eq!(found, [(Vec::new(), vec!["a".to_owned(), "b".to_owned()])]);
    let upward = Modules::read(folder.path()).upward();
    assert_eq!(upward, [(vec!["a".to_owned()], "crate::B".to_owned())].into());
}
