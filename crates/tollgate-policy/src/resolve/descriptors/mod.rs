//! Converts the key `descriptors` to descriptor trees, whose nodes refer to limits.

mod node;
mod replaced;
mod unreachable;

use std::collections::HashMap;

use tollgate_core::policy::descriptors::{Domain, MAX_DEPTH, Node};

use self::node::DescriptorResolver;
use super::limits::ResolvedLimit;
use super::names::NameTable;
use super::rules::default_on_failure;
use crate::decode::{List, Spanned, quoted};
use crate::raw::{self, DescriptorDomain, DescriptorNode, PolicyFile};
use crate::report::Report;
use crate::span::Span;

/// Returns the domains in file order. An element is `None` if the domain has a mistake, which is
/// reported.
pub(super) fn domains(
    file: &PolicyFile,
    counted: &[Option<ResolvedLimit>],
    limits: &mut NameTable<'_, raw::Limit>,
    report: &mut Report<'_>,
) -> Vec<Option<Domain>> {
    let Some(given) = file.descriptors.given() else { return Vec::new() };
    let List(raw) = &given.value;
    if raw.is_empty() {
        report.error(given.at, "`descriptors` is empty", "add a domain, or remove `descriptors`");
    }
    check_names(raw, report);
    let on_failure = default_on_failure(file);
    let domain = |given: &Spanned<DescriptorDomain>| {
        let raw = &given.value;
        let mut resolver =
            DescriptorResolver { counted, limits: &mut *limits, report: &mut *report };
        let tree = raw.tree.given().and_then(|tree| resolver.level(&tree.value, 0));
        if let Some(tree) = raw.tree.given().filter(|tree| tree.value.0.is_empty()) {
            report.error(tree.at, "`tree` is empty", "add a descriptor");
        }
        replaced::check(raw, report);
        unreachable::warn(raw, report);
        Some(Domain {
            name: raw.domain.value()?.0.as_str().into(),
            counting: raw.counting.value().map(|word| word.0).unwrap_or_default(),
            on_failure: raw.on_failure.value().map_or(on_failure, |own| own.0),
            tree: tree?,
        })
    };
    raw.iter().map(domain).collect()
}

/// Reports domains with the same name.
fn check_names(raw: &[Spanned<DescriptorDomain>], report: &mut Report<'_>) {
    let mut first_spans: HashMap<&str, Span> = HashMap::new();
    for name in raw.iter().filter_map(|domain| domain.value.domain.given()) {
        if let Some(first) = first_spans.insert(&name.value.0, name.at) {
            let message = format_args!("duplicate domain {}", quoted(&name.value.0));
            let location = report.location(first, name.at);
            report.error(name.at, message, format_args!("first {location}"));
        }
    }
}

/// Returns all descriptors of a domain, at every depth of its tree.
fn all(domain: &DescriptorDomain) -> Vec<&DescriptorNode> {
    let mut waiting: Vec<_> = domain.tree.value().into_iter().collect();
    let mut all = Vec::new();
    while let Some(List(nodes)) = waiting.pop() {
        all.extend(nodes.iter().map(|node| &node.value));
        waiting.extend(nodes.iter().filter_map(|node| node.value.descriptors.value()));
    }
    all
}

/// Returns the name by which `replaces` refers to the descriptor: its own name, or the name of its
/// limit. Returns `None` if the descriptor has neither.
fn name(node: &DescriptorNode) -> Option<&str> {
    let own = node.name.value();
    own.or_else(|| node.limit.value()).map(|name| name.0.as_str())
}

/// Reports descriptors that have the same parent, key and value.
fn check_duplicates(nodes: &[Spanned<DescriptorNode>], report: &mut Report<'_>) {
    let mut lines: HashMap<(&str, &str), usize> = HashMap::new();
    for node in nodes {
        let Some(key) = node.value.key.given() else { continue };
        let value = node.value.value.value().map_or("", |value| &value.0);
        if let Some(line) = lines.insert((&key.value.0, value), key.at.line) {
            let message = match value {
                "" => format!("duplicate descriptor {}", quoted(&key.value.0)),
                value => format!("duplicate descriptor {}", entry(&key.value.0, value)),
            };
            report.error(key.at, message, format_args!("first on line {line}"));
        }
    }
}

/// Returns the key and the value of a descriptor as a quoted text for messages.
fn entry(key: &str, value: &str) -> String {
    quoted(&format!("{key}={value}"))
}

/// Returns whether descriptors at `depth` are too deep in the tree, which is reported at the
/// position `at`.
fn is_too_deep(depth: usize, at: Span, report: &mut Report<'_>) -> bool {
    if depth >= MAX_DEPTH {
        let message = format_args!("descriptors nested more than {MAX_DEPTH} levels deep");
        report.plain_error(at, message);
    }
    depth >= MAX_DEPTH
}

/// Returns the nodes, or `None` if one of them is `None` because of a mistake in its descriptor.
fn whole(nodes: Vec<Option<Node>>) -> Option<Vec<Node>> {
    nodes.into_iter().collect()
}
