//! Warnings about patterns in descriptors that never apply.

use tollgate_core::policy::descriptors::Pattern;

use super::entry;
use crate::decode::{List, Spanned};
use crate::raw::{DescriptorDomain, DescriptorNode};
use crate::report::Report;

/// The largest number of patterns below one descriptor that are compared with each other. Further
/// patterns are not checked.
const MAX_COMPARED: usize = 256;

/// Warns of patterns that never apply, because an earlier pattern matches all of their values.
pub(super) fn warn(domain: &DescriptorDomain, report: &mut Report<'_>) {
    let mut waiting: Vec<_> = domain.tree.value().into_iter().collect();
    while let Some(List(nodes)) = waiting.pop() {
        side_by_side(nodes, report);
        waiting.extend(nodes.iter().filter_map(|node| node.value.descriptors.value()));
    }
}

fn side_by_side(nodes: &[Spanned<DescriptorNode>], report: &mut Report<'_>) {
    let pattern = |node: &Spanned<DescriptorNode>| {
        let (key, value) = (node.value.key.value()?, node.value.value.given()?);
        Pattern::parse(&value.value.0).ok().map(|pattern| (key.0.clone(), pattern, value.at))
    };
    let patterns: Vec<_> = nodes.iter().filter_map(pattern).take(MAX_COMPARED).collect();
    for (index, (key, pattern, at)) in patterns.iter().enumerate() {
        // If the earlier pattern matches the text of the later pattern, it matches every value that
        // the later pattern matches. Its `*` match the `*` of the later pattern, and therefore also
        // every text in place of them.
        let covers = |earlier: &&(String, Pattern, _)| {
            earlier.0 == *key
                && earlier.1.matches(pattern.as_str().as_bytes())
                && earlier.1 != *pattern
        };
        if let Some((_, earlier, _)) = patterns[..index].iter().find(covers) {
            let message = format_args!(
                "the pattern {} matches no value except its own text",
                entry(key, pattern.as_str())
            );
            let hint = format_args!(
                "{} comes first and matches all of its values",
                entry(key, earlier.as_str())
            );
            report.warning(*at, message, hint);
        }
    }
}
