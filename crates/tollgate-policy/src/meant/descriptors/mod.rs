//! Trees of descriptors: nodes with their limits by name.

mod node;
mod replaced;
mod unmet;

use std::collections::HashMap;

use tollgate_core::policy::descriptors::{Domain, MAX_DEPTH, Node};

use self::node::Means;
use super::limits::Counted;
use super::names::Known;
use super::rules::default_on_failure;
use crate::read::{Given, List, quoted};
use crate::report::Report;
use crate::span::Span;
use crate::written::{self, DescriptorDomain, DescriptorNode, PolicyFile};

/// The domains in their order; `None` for what is wrong, which is reported.
pub(super) fn domains(
    file: &PolicyFile,
    counted: &[Option<Counted>],
    limits: &mut Known<'_, written::Limit>,
    report: &mut Report<'_>,
) -> Vec<Option<Domain>> {
    let Some(given) = file.descriptors.given() else { return Vec::new() };
    let List(written) = &given.value;
    if written.is_empty() {
        report.mistake(given.at, "there is no domain", "write one, or leave `descriptors` out");
    }
    check_names(written, report);
    let on_failure = default_on_failure(file);
    let domain = |given: &Given<DescriptorDomain>| {
        let written = &given.value;
        let mut means = Means { counted, limits: &mut *limits, report: &mut *report };
        let tree = written.tree.given().and_then(|tree| means.level(&tree.value, 0));
        if let Some(tree) = written.tree.given().filter(|tree| tree.value.0.is_empty()) {
            report.mistake(tree.at, "there is no descriptor", "a tree says what is limited");
        }
        replaced::check(written, report);
        unmet::warn(written, report);
        Some(Domain {
            name: written.domain.value()?.0.as_str().into(),
            counting: written.counting.value().map(|word| word.0).unwrap_or_default(),
            on_failure: written.on_failure.value().map_or(on_failure, |own| own.0),
            tree: tree?,
        })
    };
    written.iter().map(domain).collect()
}

/// Reports domains of the same name.
fn check_names(written: &[Given<DescriptorDomain>], report: &mut Report<'_>) {
    let mut lines: HashMap<&str, usize> = HashMap::new();
    for name in written.iter().filter_map(|domain| domain.value.domain.given()) {
        if let Some(line) = lines.insert(&name.value.0, name.at.line) {
            let message = format_args!("another domain is called {}", quoted(&name.value.0));
            report.mistake(name.at, message, format_args!("the one on line {line}"));
        }
    }
}

/// All descriptors of a domain, wherever they stand in its tree.
fn all(domain: &DescriptorDomain) -> Vec<&DescriptorNode> {
    let mut waiting: Vec<_> = domain.tree.value().into_iter().collect();
    let mut all = Vec::new();
    while let Some(List(nodes)) = waiting.pop() {
        all.extend(nodes.iter().map(|node| &node.value));
        waiting.extend(nodes.iter().filter_map(|node| node.value.descriptors.value()));
    }
    all
}

/// The name under which a descriptor can be replaced, if it is counted or blocked.
fn name(node: &DescriptorNode) -> Option<&str> {
    let own = node.name.value();
    own.or_else(|| node.limit.value()).map(|name| name.0.as_str())
}

/// Reports two descriptors side by side that are the same.
fn check_twice(nodes: &[Given<DescriptorNode>], report: &mut Report<'_>) {
    let mut lines: HashMap<(&str, &str), usize> = HashMap::new();
    for node in nodes {
        let Some(key) = node.value.key.given() else { continue };
        let value = node.value.value.value().map_or("", |value| &value.0);
        if let Some(line) = lines.insert((&key.value.0, value), key.at.line) {
            let message = match value {
                "" => format!("the descriptor {} is there twice", quoted(&key.value.0)),
                value => format!("the descriptor {} is there twice", entry(&key.value.0, value)),
            };
            report.mistake(key.at, message, format_args!("first on line {line}"));
        }
    }
}

/// A key with its value as messages name it.
fn entry(key: &str, value: &str) -> String {
    quoted(&format!("{key}={value}"))
}

/// Whether nodes at `depth` are too deep, which is reported.
fn is_too_deep(depth: usize, at: Span, report: &mut Report<'_>) -> bool {
    if depth >= MAX_DEPTH {
        let message = format_args!("descriptors nested more than {MAX_DEPTH} levels deep");
        report.plain_mistake(at, message);
    }
    depth >= MAX_DEPTH
}

/// Nodes, or none if one of them is wrong.
fn whole(nodes: Vec<Option<Node>>) -> Option<Vec<Node>> {
    nodes.into_iter().collect()
}
