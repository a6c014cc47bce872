//! One level of a descriptor tree.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::MAX_DEPTH;
use super::node::{Allowance, Node, NodeValue};

/// The nodes of one level, no two of which have the same key and value.
#[derive(Clone, Debug, Default)]
pub struct DescriptorLevel {
    nodes: Vec<Node>,
    /// Node indices, sorted by key and value.
    sorted: Vec<usize>,
    /// Indices of the nodes with a pattern, in the order of the policy.
    wildcards: Vec<usize>,
}

/// The reason why nodes cannot form a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelError {
    /// A key is empty.
    EmptyKey,
    /// Two nodes have the same key and value.
    Duplicate {
        /// The index of the first node.
        first: usize,
        /// The index of the second node.
        second: usize,
        /// Their key.
        key: Box<str>,
    },
}

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyKey => f.write_str("a descriptor's key is empty"),
            Self::Duplicate { first, second, key } => {
                write!(f, "descriptors {first} and {second} have the same key {key:?} and value")
            }
        }
    }
}

impl core::error::Error for LevelError {}

impl DescriptorLevel {
    /// Creates a level.
    ///
    /// # Errors
    /// [`LevelError`] for an empty key, and for two nodes with the same key and value.
    pub fn new(nodes: Vec<Node>) -> Result<Self, LevelError> {
        if nodes.iter().any(|node| node.key.is_empty()) {
            return Err(LevelError::EmptyKey);
        }
        let mut sorted: Vec<usize> = (0..nodes.len()).collect();
        sorted.sort_by_key(|index| names(&nodes[*index]));
        let twice = sorted.windows(2).find(|two| names(&nodes[two[0]]) == names(&nodes[two[1]]));
        if let Some(two) = twice {
            let key = nodes[two[0]].key.clone();
            return Err(LevelError::Duplicate { first: two[0], second: two[1], key });
        }
        let is_wildcard = |index: &usize| matches!(nodes[*index].value, NodeValue::Wildcard(..));
        let wildcards = (0..nodes.len()).filter(is_wildcard).collect();
        Ok(Self { nodes, sorted, wildcards })
    }

    /// Returns the nodes, in the order of the policy.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns whether the level has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the node that matches an entry: the one with its value, otherwise the first pattern
    /// that matches, otherwise the one for any value.
    ///
    /// A value with the text of a pattern matches that pattern's node, as in the reference server.
    #[must_use]
    pub fn find_match(&self, key: &str, value: &[u8]) -> Option<&Node> {
        let has_value = !value.is_empty();
        let exact = if has_value { self.named(key, value) } else { None };
        exact.or_else(|| self.fitting(key, value)).or_else(|| self.named(key, b""))
    }

    /// Returns whether all limits are indices below `limits` and no node is too deep, for a level
    /// at `depth`.
    pub(in crate::policy) fn is_whole(&self, limits: usize, depth: usize) -> bool {
        let node_is_whole = |node: &Node| {
            let limit = node.rule.as_ref().map(|rule| rule.allowance);
            let is_known = !matches!(limit, Some(Allowance::Limit(index)) if index >= limits);
            is_known && depth < MAX_DEPTH && node.children.is_whole(limits, depth + 1)
        };
        self.nodes.iter().all(node_is_whole)
    }

    fn named(&self, key: &str, value: &[u8]) -> Option<&Node> {
        let names = |at: &usize| names(&self.nodes[*at]);
        let at = self.sorted.binary_search_by(|at| names(at).cmp(&(key, value)));
        at.ok().map(|at| &self.nodes[self.sorted[at]])
    }

    fn fitting(&self, key: &str, value: &[u8]) -> Option<&Node> {
        let nodes = self.wildcards.iter().map(|index| &self.nodes[*index]);
        let mut of_key = nodes.filter(|node| *node.key == *key);
        of_key.find(|node| match &node.value {
            NodeValue::Wildcard(pattern, _) => pattern.matches(value),
            NodeValue::Exact(_) | NodeValue::Any => false,
        })
    }
}

fn names(node: &Node) -> (&str, &[u8]) {
    (&node.key, node.value.as_str().as_bytes())
}
