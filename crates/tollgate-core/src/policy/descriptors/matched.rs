//! The search for the node of a tree that a descriptor matches, and the subject of the descriptor.

use alloc::vec::Vec;

use super::tree::{DescriptorRule, Node, NodeValue, Sharing};
use super::{Domain, MAX_DEPTH};
use crate::key::{KeyedHash, Subject, Value};

/// The match of a descriptor with a node of the tree that has a rule.
#[derive(Clone, Debug)]
pub struct DescriptorMatch<'p> {
    /// The rule of the tree node that the descriptor's last entry matched.
    pub rule: &'p DescriptorRule,
    /// The nodes that the entries matched, one node for each entry. The rule belongs to the last
    /// node.
    pub path: Vec<&'p Node>,
}

impl Domain {
    /// Returns the match of a descriptor, if the descriptor's last entry matches a node with a
    /// rule.
    ///
    /// Each entry is matched with the nodes below the node of the previous entry. The search does
    /// not go back: it ends at an entry without a match, even if another node on an earlier level
    /// would have led to a match. A node's rule does not apply to longer descriptors.
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
    /// Returns the subject of this descriptor: the domain and all entries. If all values that match
    /// a pattern share a counter, the subject contains the pattern in place of the value.
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

/// Creates the subject of a descriptor: its entries, and a last pair of `kind` and `domain`.
///
/// The last pair never comes from a caller. The pair separates the subjects of different domains.
/// Its kind separates the limits of a tree from limits that requests contain. The pair is not the
/// first one, because stores with several shards select the shard by the first pair. If it were the
/// first pair, all subjects of a domain would be on one shard.
pub(super) fn subject<'a>(
    kind: &'a str,
    domain: &'a str,
    entries: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
    key: &dyn KeyedHash,
) -> Subject {
    let pairs = entries.chain(core::iter::once((kind, domain.as_bytes())));
    Subject::new(pairs.map(|(name, value)| (name, Value::Clear(value))), key)
}
