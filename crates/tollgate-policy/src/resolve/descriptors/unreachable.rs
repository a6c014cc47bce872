//! Patterns that no value ever meets.

use tollgate_core::policy::descriptors::Pattern;

use super::entry;
use crate::decode::{List, Spanned};
use crate::raw::{DescriptorDomain, DescriptorNode};
use crate::report::Report;

/// The most patterns side by side that are compared with each other.
const MAX_COMPARED: usize = 256;

/// Warns of patterns that an earlier one always comes before.
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
        // A pattern that matches another one's text matches all that the other one does: whatever
        // stands for the star of the other one stood for by its own.
        let covers = |earlier: &&(String, Pattern, _)| {
            earlier.0 == *key
                && earlier.1.matches(pattern.as_str().as_bytes())
                && earlier.1 != *pattern
        };
        if let Some((_, earlier, _)) = patterns[..index].iter().find(covers) {
            let message =
                format_args!("no value but itself meets {}", entry(key, pattern.as_str()));
            let hint =
                format_args!("{} comes first and fits all of them", entry(key, earlier.as_str()));
            report.warning(*at, message, hint);
        }
    }
}
