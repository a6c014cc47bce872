//! The nodes of a descriptor tree, and their levels.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::{MAX_DEPTH, Metadata, Pattern};

/// A node of a descriptor tree: the key and value of an entry, the rule for descriptors that end at
/// this node, and the nodes for the next entry.
#[derive(Clone, Debug)]
pub struct Node {
    /// The key of the entries that match this node.
    pub key: Box<str>,
    /// The values of the entries that match this node.
    pub value: NodeValue,
    /// The rule for descriptors that end at this node, if there is a rule. A descriptor ends at the
    /// node that its last entry matches.
    pub rule: Option<DescriptorRule>,
    /// The next level of the tree.
    pub children: DescriptorLevel,
}

/// The values of a key that match a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeValue {
    /// The node matches exactly this value.
    Exact(Box<str>),
    /// The node matches all values that match the pattern.
    Wildcard(Pattern, Sharing),
    /// The node matches every value.
    Any,
}

/// Whether the values that match a pattern have separate counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// One counter for each value.
    #[default]
    PerValue,
    /// All values that match the pattern share one counter.
    Shared,
}

/// The rule of a node. It applies to descriptors that end at the node: their last entry matches it.
#[derive(Clone, Debug)]
pub struct DescriptorRule {
    /// The limit, or the fixed decision if the rule has no limit.
    pub allowance: Allowance,
    /// The name that callers see, and by which other rules replace this rule. The default is the
    /// limit's name.
    pub name: Option<Box<str>>,
    /// What a refusal of the descriptor means for the whole request.
    pub mode: NodeMode,
    /// The names of other rules. If a request matches this rule, descriptors that match those other
    /// rules are not counted.
    pub replaces: Vec<Box<str>>,
    /// The metadata that the caller receives while the limit is not exceeded.
    pub metadata: Metadata,
}

/// The limit of a rule, or the fixed decision of a rule without a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// A limit, counted separately for each descriptor: an index into
    /// [`Policy::limits`](crate::Policy::limits).
    Limit(usize),
    /// No limit. Requests are not counted.
    Unlimited,
    /// No request is admitted. Requests are not counted.
    Blocked,
}

/// What a refusal of a descriptor means for the whole request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeMode {
    /// If the descriptor is refused, the whole request is refused.
    #[default]
    Enforce,
    /// The descriptor is counted and evaluated, and never refuses the request.
    Shadow,
    /// The request is refused only if all of its [quota groups](super::QuotaGroup) are exceeded.
    Quota,
}

impl DescriptorRule {
    /// Creates a rule that enforces `allowance`.
    #[must_use]
    pub fn new(allowance: Allowance) -> Self {
        Self {
            allowance,
            name: None,
            mode: NodeMode::default(),
            replaces: Vec::new(),
            metadata: Metadata::default(),
        }
    }
}

impl NodeValue {
    /// Returns the text of the value, which is empty for [`Any`](Self::Any).
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Exact(value) => value,
            Self::Wildcard(pattern, _) => pattern.as_str(),
            Self::Any => "",
        }
    }
}

/// The nodes of one level. No two of them have the same key and value.
#[derive(Clone, Debug, Default)]
pub struct DescriptorLevel {
    nodes: Vec<Node>,
    /// The indices of all nodes, sorted by the keys and the values of the nodes.
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
        /// The index of the first of the two nodes.
        first: usize,
        /// The index of the second of the two nodes.
        second: usize,
        /// The key of both nodes.
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

    /// Returns the node that matches an entry: the node with exactly this value, or else the first
    /// node with a matching pattern, or else the node for any value. Returns `None` if no node
    /// matches.
    ///
    /// A value that equals the text of a pattern matches the node of that pattern, as in the
    /// reference server.
    #[must_use]
    pub fn find_match(&self, key: &str, value: &[u8]) -> Option<&Node> {
        let has_value = !value.is_empty();
        let exact = if has_value { self.named(key, value) } else { None };
        exact.or_else(|| self.fitting(key, value)).or_else(|| self.named(key, b""))
    }

    /// Returns whether this level and the levels below it are valid. `depth` is the depth of this
    /// level. The levels are valid if all indices of limits are below `limits`, and if no node is
    /// deeper than [`MAX_DEPTH`].
    pub(in crate::policy) fn is_complete(&self, limits: usize, depth: usize) -> bool {
        let node_is_whole = |node: &Node| {
            let limit = node.rule.as_ref().map(|rule| rule.allowance);
            let is_known = !matches!(limit, Some(Allowance::Limit(index)) if index >= limits);
            is_known && depth < MAX_DEPTH && node.children.is_complete(limits, depth + 1)
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
