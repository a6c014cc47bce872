//! The key `include`: combines the keys of several files into one document.

use std::collections::HashSet;
use std::path::Path;

use crate::decode::{Decode as _, OneOrMore, Spanned, Text, quoted};
use crate::files::{FileSource, Files, MAX_FILE_BYTES};
use crate::report::Report;
use crate::span::Span;
use crate::tree::{MAX_NODES, Node, NodeKind, document_of};

/// The largest number of files that a policy file can include.
pub(crate) const MAX_INCLUDED: usize = 64;

/// The key that names the included files.
const INCLUDE: &str = "include";

/// The keys whose values are named entries, such as limits. The entries of all files are combined.
const NAMED: [&str; 3] = ["subjects", "networks", "limits"];

/// The keys whose values are lists. The lists of all files are joined, and the elements of included
/// files come first.
const LISTS: [&str; 2] = ["rules", "descriptors"];

/// Returns `document` combined with the files that it includes. Returns `None` after reporting a
/// mistake.
pub(crate) fn merged(
    document: Node,
    files: &mut Files<'_>,
    report: &mut Report<'_>,
) -> Option<Node> {
    let Some(given) = included(&document, report) else { return Some(document) };
    if given.len() > MAX_INCLUDED {
        let message = format_args!("a policy of {} files", given.len() + 1);
        let hint = format_args!("expected at most {MAX_INCLUDED} included files");
        report.error(given[0].key, message, hint);
        return None;
    }
    let FileSource::Directory(directory) = files.source else {
        let message = "files are only read for a policy that is a file itself";
        report.error(given[0].at, message, "write the content of the file here");
        return None;
    };
    let (mut merged, mut is_complete) = (Vec::new(), true);
    let mut size = document.size;
    for one in &given {
        match read(one, directory, files, report) {
            Some(node) => {
                size += node.size;
                is_complete &= add(&mut merged, node, report).is_some();
            }
            None => is_complete = false,
        }
    }
    if size > MAX_NODES {
        let message = format_args!("more than {MAX_NODES} values in all files");
        report.plain_error(given[0].key, message);
        return None;
    }
    let at = document.at;
    is_complete &= add(&mut merged, document, report).is_some();
    is_complete.then_some(Node { kind: NodeKind::Mapping(merged), at, size })
}

/// Returns the names of the files that `document` includes, or `None` if it includes no files. A
/// mistake in the names is reported later, when all keys of the document are read.
fn included(document: &Node, report: &mut Report<'_>) -> Option<Vec<Spanned<Text>>> {
    let NodeKind::Mapping(pairs) = &document.kind else { return None };
    let (_, value) = pairs.iter().find(|(key, _)| key.text() == Some(INCLUDE))?;
    let is_list = matches!(&value.kind, NodeKind::Sequence(all) if !all.is_empty());
    if !is_list && value.text().is_none() {
        return None;
    }
    OneOrMore::decode(value, report).map(|OneOrMore(given)| given).filter(|given| !given.is_empty())
}

/// Reads an included file and returns its document. Returns `None` after reporting a mistake.
fn read(
    given: &Spanned<Text>,
    directory: &Path,
    files: &mut Files<'_>,
    report: &mut Report<'_>,
) -> Option<Node> {
    let (path, text) = files.text(directory, given, MAX_FILE_BYTES as u64, report)?;
    let file = report.include(&path.display().to_string(), text.clone());
    let node = document_of(file, &text, report)?;
    let NodeKind::Mapping(pairs) = &node.kind else {
        let start = Span { file, ..Span::START };
        report.error(start, "this file has no keys", "expected keys such as `limits` and `rules`");
        return None;
    };
    if let Some((key, _)) = pairs.iter().find(|(key, _)| key.text() == Some(INCLUDE)) {
        let hint = "list all files in the policy file itself";
        report.error(key.at, "an included file includes another", hint);
        return None;
    }
    Some(node)
}

/// Adds the keys of the document `file` to `merged`. Returns `None` after reporting a key that may
/// occur in only one file.
fn add(merged: &mut Vec<(Node, Node)>, file: Node, report: &mut Report<'_>) -> Option<()> {
    let NodeKind::Mapping(pairs) = file.kind else {
        // A file that is not a mapping is reported later, when the keys are read.
        merged.push((Node { kind: NodeKind::Null, at: file.at, size: 1 }, file));
        return Some(());
    };
    let (mut is_complete, mut own) = (true, HashSet::new());
    for (key, value) in pairs {
        let name = key.text().unwrap_or_default().to_owned();
        let same = |(known, _): &&mut (Node, Node)| known.text() == Some(&name);
        let is_new = own.insert(name.clone());
        let Some((known, old)) = merged.iter_mut().find(same).filter(|_| is_new) else {
            // A duplicate key in one file is reported later, when the keys are read.
            merged.push((key, value));
            continue;
        };
        old.size += value.size;
        match (&mut old.kind, value.kind) {
            (NodeKind::Mapping(old), NodeKind::Mapping(new)) if NAMED.contains(&&*name) => {
                old.extend(new);
            }
            (NodeKind::Sequence(old), NodeKind::Sequence(new)) if LISTS.contains(&&*name) => {
                old.extend(new);
            }
            _ => {
                let message = format_args!("{} is in two files", quoted(&name));
                let hint = format_args!("also {}", report.location(known.at, key.at));
                report.error(key.at, message, hint);
                is_complete = false;
            }
        }
    }
    is_complete.then_some(())
}
