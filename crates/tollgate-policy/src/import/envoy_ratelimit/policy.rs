//! Writes the policy file that an import generates.

use std::fmt::Write;

use tollgate_core::policy::descriptors::Counting;

use crate::import::text::{Mapping, scalar};

/// The content of a policy file before it is formatted.
#[derive(Debug, Default)]
pub(super) struct PolicyDraft {
    /// The keys of each limit, with the name of the limit.
    pub(super) limits: Vec<(String, Mapping)>,
    /// The keys of each root descriptor, grouped by domain.
    pub(super) domains: Vec<(String, Vec<Mapping>)>,
}

impl PolicyDraft {
    /// Returns the text of the policy file. `counting` is the way in which the descriptors of a
    /// request are counted.
    pub(super) fn write(&self, counting: Counting) -> String {
        let mut out = String::from("limits:");
        out.push_str(if self.limits.is_empty() { " {}\n" } else { "\n" });
        let width = self.limits.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
        for (name, limit) in &self.limits {
            let limit = limit.inline().unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = writeln!(out, "  {:width$} {limit}", format!("{}:", scalar(name)));
        }
        // Domains without descriptors are left out, because requests of an unknown domain are not
        // limited either.
        let domains: Vec<_> = self.domains.iter().filter(|(_, tree)| !tree.is_empty()).collect();
        if !domains.is_empty() {
            out.push_str("\ndescriptors:\n");
        }
        for (name, tree) in domains {
            let _ = writeln!(out, "  - domain: {}", scalar(name));
            if counting == Counting::Each {
                out.push_str("    counting: each\n");
            }
            out.push_str("    tree:\n");
            tree.iter().for_each(|node| node.write_item(&mut out, 6));
        }
        out
    }
}
