//! What a descriptor meets in a tree, and whom that limits.

use alloc::vec::Vec;

use super::node::{DescriptorRule, Node, NodeValue, Sharing};
use super::{Domain, MAX_DEPTH};
use crate::key::{KeyedHash, Subject, Value};

/// A descriptor that ended on a node with a rule.
#[derive(Clone, Debug)]
pub struct DescriptorMatch<'p> {
    /// What the node says.
    pub rule: &'p DescriptorRule,
    /// The nodes that the entries met, one each; the rule is that of the last.
    pub path: Vec<&'p Node>,
}

impl Domain {
    /// The node that a descriptor ends on, if that has a rule.
    ///
    /// Each entry in its turn meets the nodes below the one that the entry before it met. There is
    /// no going back: an entry that meets nothing there ends the search, also where another node
    /// would have led further. Nor does a node speak for descriptors that go on below it.
    #[must_use]
    pub fn find_match(&self, entries: &[(&str, impl AsRef<[u8]>)]) -> Option<DescriptorMatch<'_>> {
        if entries.len() > MAX_DEPTH {
            return None;
        }
        let mut level = &self.tree;
        let mut path = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let node = level.find_match(key, value.as_ref())?;
            level = &node.children;
            path.push(node);
        }
        let rule = path.last()?.rule.as_ref()?;
        Some(DescriptorMatch { rule, path })
    }
}

impl DescriptorMatch<'_> {
    /// Who is limited: all that the descriptor says, with the pattern in place of a value where all
    /// values that fit it share a counter, and the domain.
    pub(super) fn subject(
        &self,
        domain: &str,
        entries: &[(&str, impl AsRef<[u8]>)],
        key: &dyn KeyedHash,
    ) -> Subject {
        let values = entries.iter().zip(&self.path).map(|((name, value), node)| {
            let value = match &node.value {
                NodeValue::Wildcard(pattern, Sharing::Shared) => pattern.as_str().as_bytes(),
                _ => value.as_ref(),
            };
            (*name, value)
        });
        subject("domain", domain, values, key)
    }
}

/// A subject of descriptors. The last pair is never a caller's: it tells domains apart, and what a
/// tree limits from what a request limits itself. It is not the first, by which stores of several
/// shards route: a domain would be on one of them.
pub(super) fn subject<'a>(
    kind: &'a str,
    domain: &'a str,
    entries: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
    key: &dyn KeyedHash,
) -> Subject {
    let pairs = entries.chain(core::iter::once((kind, domain.as_bytes())));
    Subject::new(pairs.map(|(name, value)| (name, Value::Clear(value))), key)
}
