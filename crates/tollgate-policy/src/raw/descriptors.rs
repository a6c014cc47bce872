//! Trees of descriptors, as written.

use super::choices::{CountingName, DescriptorMode, OnFailureName};
use crate::decode::{Anything, Flag, List, OneOrMore, Text, keys};

keys! {
    /// A domain: limits for callers that name it and say themselves what a request is.
    struct DescriptorDomain as "a domain", requires "domain", "tree" {
        /// Its name, which callers send. A request to a domain that no file names is not limited.
        domain: Text,
        /// How the descriptors of one request are counted. By default `atomic`.
        counting: CountingName,
        /// What becomes of a request while the store has no answer. By default what `answers` says.
        on_failure: OnFailureName,
        /// What the first entry of a descriptor can be.
        tree: List<DescriptorNode>,
    }
}

keys! {
    /// A descriptor: an entry's key and value, and what limits the descriptors that end on it.
    struct DescriptorNode as "a descriptor", requires "key" {
        /// The entry's key.
        key: Text,
        /// The entry's value; each `*` in it, at most eight, stands for any characters or none. Without it, any value that no other descriptor beside it meets.
        value: Text,
        /// The limit of descriptors that end here, each with a counter of its own. It has no `per`: the descriptors say whom it limits.
        limit: Text,
        /// Whether descriptors that end here may everything. By default false.
        unlimited: Flag,
        /// Whether descriptors that end here may nothing. By default false.
        blocked: Flag,
        /// The name that callers are told, and that `replaces` speaks of. By default the limit's.
        name: Text,
        /// What a refusal means. By default `enforce`.
        mode: DescriptorMode,
        /// The names of descriptors of the same domain that are not counted in a request which meets this one.
        replaces: OneOrMore<Text>,
        /// With a `*` in the value: whether all values that fit it share one counter. By default false: each has its own.
        share_threshold: Flag,
        /// Whether what is measured here tells values apart. By default false.
        detailed_metric: Flag,
        /// What the caller is handed as dynamic metadata while this is not over its limit.
        metadata: Anything,
        /// What the next entry can be.
        descriptors: List<DescriptorNode>,
    }
}
