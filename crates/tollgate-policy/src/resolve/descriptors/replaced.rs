//! Checks the names to which `replaces` refers.

use std::collections::BTreeSet;

use super::{all, name};
use crate::decode::quoted;
use crate::raw::DescriptorDomain;
use crate::report::Report;

/// Reports names that no descriptor of the domain has, and descriptors that replace themselves.
pub(super) fn check(domain: &DescriptorDomain, report: &mut Report<'_>) {
    let nodes = all(domain);
    let known: BTreeSet<&str> = nodes.iter().filter_map(|node| name(node)).collect();
    for node in nodes {
        let names = node.replaces.value().map_or(&[][..], |names| &names.0);
        for given in names {
            let replaced = given.value.0.as_str();
            if name(node) == Some(replaced) {
                report.plain_error(given.at, "a descriptor cannot replace itself");
            } else if !known.contains(replaced) {
                let message =
                    format!("no descriptor of this domain has the name {}", quoted(replaced));
                report.error_with_suggestion(given.at, message, replaced, known.iter().copied());
            }
        }
    }
}
