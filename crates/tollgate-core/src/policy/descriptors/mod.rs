//! Descriptor trees: limits for callers that describe their requests, such as Envoy.
//!
//! A caller names a domain and sends descriptors. A descriptor is an ordered list of entries, and
//! an entry is a key and a value. The policy has a tree of such keys and values for each domain.
//! The tree's node that the last entry of a descriptor matches contains the rule for that
//! descriptor.
//!
//! The matching is that of `envoyproxy/ratelimit`, the reference server of the protocol, with one
//! difference. In the reference server, a counter's name joins keys and values by `_`, so (`a`,
//! `b_c`) and (`a_b`, `c`) share a counter. In Tollgate they have two counters.

pub mod matched;
pub mod metadata;
pub mod plan;
pub mod rate;
pub mod tree;

use alloc::boxed::Box;

pub use matched::DescriptorMatch;
pub use metadata::Metadata;
pub use plan::{
    Descriptor, DescriptorCharges, DescriptorOutcome, DescriptorPlan, Hits, Limited,
    PlannedDescriptor, QuotaGroup,
};
pub use rate::{Rate, TimeUnit};
pub use tree::{
    Allowance, DescriptorLevel, DescriptorRule, LevelError, Node, NodeMode, NodeValue, Sharing,
};

use super::OnFailure;
pub use super::pattern::{Pattern, PatternError};

/// The largest number of entries of a descriptor, and the largest depth of a tree.
pub const MAX_DEPTH: usize = 32;

/// A tree of limits for the descriptors of one domain.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    /// The name of the domain, unique in the policy. Callers send it with every request.
    pub name: Box<str>,
    /// The way in which the descriptors of one request are counted.
    pub counting: Counting,
    /// The fallback while the store does not answer.
    pub on_failure: OnFailure,
    /// The first level of the tree, which the first entries of descriptors match.
    pub tree: DescriptorLevel,
}

/// The way in which the descriptors of one request are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// All descriptors of a request are one charge. A refused request is counted on no limit.
    #[default]
    Atomic,
    /// Each descriptor is charged separately, as in the reference server. If one descriptor is
    /// refused, the others are still counted.
    Each,
}
