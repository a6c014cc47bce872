//! Descriptor trees: limits for callers that say themselves what a request is, as Envoy does.
//!
//! A caller names a domain and sends descriptors, each an ordered list of entries (key and value).
//! A domain is a tree of such keys and values; the node that a descriptor ends on says what limits
//! it. The matching is that of `envoyproxy/ratelimit`, the reference server of the protocol, with
//! one difference: there a counter's name joins keys and values by `_`, so that (`a`, `b_c`) and
//! (`a_b`, `c`) find_match in one; here they are two.

pub mod level;
pub mod matched;
pub mod metadata;
pub mod node;
pub mod pattern;
pub mod plan;
pub mod rate;

use alloc::boxed::Box;

pub use level::{DescriptorLevel, LevelError};
pub use matched::DescriptorMatch;
pub use metadata::Metadata;
pub use node::{Allowance, DescriptorRule, MetricDetail, Node, NodeMode, NodeValue, Sharing};
pub use pattern::{Pattern, PatternError};
pub use plan::{
    Descriptor, DescriptorCharges, DescriptorOutcome, DescriptorPlan, Hits, Limited,
    PlannedDescriptor, QuotaGroup,
};
pub use rate::{Rate, TimeUnit};

use super::OnFailure;

/// The most entries of a descriptor, and so the deepest that a tree can be.
pub const MAX_DEPTH: usize = 32;

/// A tree of limits for the descriptors of one domain.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    /// Its name, unique in the policy: callers send it with every request.
    pub name: Box<str>,
    /// How the descriptors of one request are counted.
    pub counting: Counting,
    /// What becomes of a request while the store has no answer.
    pub on_failure: OnFailure,
    /// The nodes that a first entry can find_match.
    pub tree: DescriptorLevel,
}

/// How the descriptors of one request are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// As one charge: a request that is refused is counted nowhere.
    #[default]
    Atomic,
    /// Each by itself, as the reference server does: what a descriptor refuses, the others still
    /// count.
    Each,
}
