//! One node of a descriptor tree.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{DescriptorLevel, Metadata, Pattern};

/// A node: the key and value of an entry, its rule, and the nodes for the next entry.
#[derive(Clone, Debug)]
pub struct Node {
    /// The key of the entry.
    pub key: Box<str>,
    /// The values of the entry that match.
    pub value: NodeValue,
    /// The rule for descriptors that end at this node, if there is one.
    pub rule: Option<DescriptorRule>,
    /// The next level.
    pub children: DescriptorLevel,
}

/// The values of a key that match a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeValue {
    /// Exactly this value.
    Exact(Box<str>),
    /// All values that match a pattern.
    Wildcard(Pattern, Sharing),
    /// All values.
    Any,
}

/// Whether the values that match a pattern have separate counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// One counter for each value.
    #[default]
    PerValue,
    /// One counter for all of them.
    Shared,
}

/// The rule of a node, for descriptors that end at it.
#[derive(Clone, Debug)]
pub struct DescriptorRule {
    /// The limit.
    pub allowance: Allowance,
    /// The name that callers see and that other rules replace; by default the limit's name.
    pub name: Option<Box<str>>,
    /// The effect of a refusal.
    pub mode: NodeMode,
    /// The names of rules that are dropped from a request that matches this rule.
    pub replaces: Vec<Box<str>>,
    /// The labels of this rule's metrics.
    pub metric: MetricDetail,
    /// The metadata that the caller receives while the limit is not exceeded.
    pub metadata: Metadata,
}

/// The limit of a node.
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

/// The effect of a node's refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeMode {
    /// The request is refused.
    #[default]
    Enforce,
    /// The request is counted and evaluated, and never refused.
    Shadow,
    /// The request is refused only if every [`QuotaGroup`](super::QuotaGroup) of it is exceeded.
    Quota,
}

/// The labels of a node's metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricDetail {
    /// One label per node.
    #[default]
    Node,
    /// One label per node and combination of matched values.
    Values,
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
            metric: MetricDetail::default(),
            metadata: Metadata::default(),
        }
    }
}

impl NodeValue {
    /// Returns the text of the value; empty for any value.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Exact(value) => value,
            Self::Wildcard(pattern, _) => pattern.as_str(),
            Self::Any => "",
        }
    }
}
