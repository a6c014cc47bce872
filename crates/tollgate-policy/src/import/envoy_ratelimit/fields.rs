//! Reads the keys of a mapping as the YAML library of Go does, in which `envoyproxy/ratelimit` is
//! written. That library supports merge keys and several spellings of booleans.

use std::collections::HashMap;

use tollgate_core::policy::descriptors::Metadata;

use crate::decode::{Anything, Decode, Integer, Spanned, quoted, unexpected};
use crate::report::Report;
use crate::span::Span;
use crate::tree::{Node, NodeKind};

/// All keys that `envoyproxy/ratelimit` accepts. It accepts each key in every mapping, even where
/// the key has no effect.
const KNOWN: [&str; 17] = [
    "domain",
    "descriptors",
    "key",
    "value",
    "rate_limit",
    "unit",
    "unit_multiplier",
    "requests_per_unit",
    "unlimited",
    "name",
    "replaces",
    "shadow_mode",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "quota_mode",
    "metadata",
];

/// The keys of a mapping that were not read yet, each with its position and its value.
pub(super) struct Fields<'n> {
    values: HashMap<&'n str, (Span, &'n Node)>,
}

impl<'n> Fields<'n> {
    /// Returns the keys and values of the mapping `node`. Reports keys that `envoyproxy/ratelimit`
    /// does not accept. Returns `None` after reporting that `node` is not a mapping. `what` is the
    /// name of the mapping in messages.
    pub(super) fn open(node: &'n Node, what: &str, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Self { values: HashMap::new() };
        fields.add(node, what, report)?;
        Some(fields)
    }

    /// Removes `key`, and returns its position and its value. Returns `None` if the key is absent
    /// or its value is null.
    pub(super) fn take(&mut self, key: &str) -> Option<(Span, &'n Node)> {
        self.values.remove(key).filter(|(_, node)| !matches!(node.kind, NodeKind::Null))
    }

    /// Returns the keys that were not read, in file order.
    pub(super) fn left(self) -> Vec<(&'n str, Span)> {
        let mut left: Vec<_> = self.values.into_iter().map(|(key, (at, _))| (key, at)).collect();
        left.sort_by_key(|(_, at)| (at.line, at.column));
        left
    }

    pub(super) fn text(&mut self, key: &str, report: &mut Report<'_>) -> Option<Spanned<String>> {
        let (key, node) = self.take(key)?;
        match node.text() {
            Some("") => None,
            Some(text) => Some(Spanned { value: text.to_owned(), at: node.at, key }),
            None => {
                unexpected(node, "a text", report);
                None
            }
        }
    }

    /// Removes a key with a boolean value. Returns the position of the key if its value is true.
    /// Returns `None` if it is false, if the key is absent, or after reporting another value.
    pub(super) fn switch(&mut self, key: &str, report: &mut Report<'_>) -> Option<Span> {
        let (key, node) = self.take(key)?;
        let word = match &node.kind {
            NodeKind::Plain(text) => text.to_ascii_lowercase(),
            _ => String::new(),
        };
        match &*word {
            "true" | "yes" | "on" | "y" => Some(key),
            "false" | "no" | "off" | "n" => None,
            _ => {
                unexpected(node, "true or false", report);
                None
            }
        }
    }

    pub(super) fn number(&mut self, key: &str, report: &mut Report<'_>) -> Option<Spanned<u32>> {
        let (key, node) = self.take(key)?;
        let Integer(number) = Integer::decode(node, report)?;
        match u32::try_from(number) {
            Ok(value) => Some(Spanned { value, at: node.at, key }),
            Err(_) => {
                let message = format_args!("{number} is too large for the server");
                report.error(node.at, message, format_args!("at most {}", u32::MAX));
                None
            }
        }
    }

    pub(super) fn metadata(
        &mut self,
        key: &str,
        report: &mut Report<'_>,
    ) -> Option<Spanned<Metadata>> {
        let (key, node) = self.take(key)?;
        let Anything(value) = Anything::decode(node, report)?;
        Some(Spanned { value, at: node.at, key })
    }

    /// Removes a key, and returns the elements of the list that is its value. Returns `None` if the
    /// key is absent, or after reporting another value.
    pub(super) fn list(&mut self, key: &str, report: &mut Report<'_>) -> Option<&'n [Node]> {
        let (_, node) = self.take(key)?;
        match &node.kind {
            NodeKind::Sequence(nodes) => Some(nodes),
            _ => {
                unexpected(node, "a list", report);
                None
            }
        }
    }

    /// Adds the keys of the mapping `node`, and also the keys of the mappings to which its merge
    /// key `<<` refers. If a key occurs in both, the value in `node` counts. Returns `None` after
    /// reporting that `node` is not a mapping.
    fn add(&mut self, node: &'n Node, what: &str, report: &mut Report<'_>) -> Option<()> {
        let NodeKind::Mapping(pairs) = &node.kind else {
            unexpected(node, what, report);
            return None;
        };
        let mut own: HashMap<&str, usize> = HashMap::new();
        for (key, value) in pairs {
            let Some(name) = key.text() else {
                unexpected(key, "a key", report);
                continue;
            };
            if name == "<<" {
                continue;
            }
            if let Some(line) = own.insert(name, key.at.line) {
                let message = format_args!("duplicate key {}", quoted(name));
                report.error(key.at, message, format_args!("first on line {line}"));
            } else if KNOWN.contains(&name) {
                self.values.entry(name).or_insert((key.at, value));
            } else {
                let message = format_args!("the server does not accept the key {}", quoted(name));
                report.error_with_suggestion(key.at, message, name, KNOWN.into_iter());
            }
        }
        let merged = pairs.iter().filter(|(key, _)| key.text() == Some("<<"));
        for (_, value) in merged {
            match &value.kind {
                NodeKind::Sequence(nodes) => {
                    nodes.iter().try_for_each(|node| self.add(node, what, report))?;
                }
                _ => self.add(value, what, report)?,
            }
        }
        Some(())
    }
}
