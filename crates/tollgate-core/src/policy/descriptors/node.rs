//! One node of a tree: which entry it meets, and what it says of descriptors that end on it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{DescriptorLevel, Metadata, Pattern};

/// One node: an entry's key and value, what it says, and the nodes that a next entry can find_match.
#[derive(Clone, Debug)]
pub struct Node {
    /// The entry's key.
    pub key: Box<str>,
    /// Which values it meets.
    pub value: NodeValue,
    /// What it says of descriptors that end here: nothing where there is none.
    pub rule: Option<DescriptorRule>,
    /// The nodes below.
    pub children: DescriptorLevel,
}

/// Which values of its key a node meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeValue {
    /// This one.
    Exact(Box<str>),
    /// All that fit a pattern.
    Wildcard(Pattern, Sharing),
    /// Any.
    Any,
}

/// Whether the values that fit a pattern have counters of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// One for each value.
    #[default]
    PerValue,
    /// One for all of them.
    Shared,
}

/// What a node says of descriptors that end on it.
#[derive(Clone, Debug)]
pub struct DescriptorRule {
    /// How much they may.
    pub allowance: Allowance,
    /// The name under which callers see it and other rules replace it. A limit's own name where
    /// none is given.
    pub name: Option<Box<str>>,
    /// What its refusal means.
    pub mode: NodeMode,
    /// Names of rules that are dropped from a request which meets this one.
    pub replaces: Vec<Box<str>>,
    /// Whether what is measured of it tells its descriptors' values apart.
    pub metric: MetricDetail,
    /// What the caller is handed while it is not over its limit.
    pub metadata: Metadata,
}

/// How much the descriptors of a node may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// What the limit says, each descriptor for itself: an index into
    /// [`Policy::limits`](crate::Policy::limits).
    Limit(usize),
    /// Everything; nothing is counted.
    Unlimited,
    /// Nothing; nothing is counted.
    Blocked,
}

/// What a node's refusal means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeMode {
    /// The request is refused.
    #[default]
    Enforce,
    /// Nothing: it is counted and judged, and stops nobody.
    Shadow,
    /// The request is refused only where every [`QuotaGroup`](super::QuotaGroup) of it is over.
    Quota,
}

/// What measurements tell apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricDetail {
    /// Nodes.
    #[default]
    Node,
    /// Nodes and the values that met them.
    Values,
}

impl DescriptorRule {
    /// A rule that enforces `allowance`.
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
    /// The value as written; empty for any.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Exact(value) => value,
            Self::Wildcard(pattern, _) => pattern.as_str(),
            Self::Any => "",
        }
    }
}
