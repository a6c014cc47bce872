//! The key `descriptors`: descriptor trees.

use super::choices::{CountingName, DescriptorMode, OnFailureName};
use crate::decode::{Anything, Flag, List, OneOrMore, Text, keys};

keys! {
    /// A domain: limits for callers that send the domain and describe requests themselves.
    struct DescriptorDomain as "a domain", requires "domain", "tree" {
        /// The name of the domain, which callers send. Requests to a domain that is not in the file
        /// are not limited.
        domain: Text,
        /// How the descriptors of one request are counted. By default `atomic`.
        counting: CountingName,
        /// The fallback for requests while the store does not answer. By default the fallback in
        /// `answers`.
        on_failure: OnFailureName,
        /// The possible first entries of a descriptor.
        tree: List<DescriptorNode>,
    }
}

keys! {
    /// A descriptor: the key and value of an entry, and the limit for descriptors that end with
    /// this entry.
    struct DescriptorNode as "a descriptor", requires "key" {
        /// The entry's key.
        key: Text,
        /// The entry's value. Each `*` in it, at most eight, matches any characters or none.
        /// Without `value`, the descriptor matches every value that no sibling matches.
        value: Text,
        /// The limit for descriptors that end here; each descriptor has its own counter. The limit
        /// has no `per`, because the descriptor is the subject.
        limit: Text,
        /// Whether descriptors that end here are always admitted. By default false.
        unlimited: Flag,
        /// Whether descriptors that end here are always refused. By default false.
        blocked: Flag,
        /// The name that callers receive and that `replaces` refers to. By default the limit's
        /// name.
        name: Text,
        /// The effect of a refusal. By default `enforce`.
        mode: DescriptorMode,
        /// The names of descriptors of the same domain that are not counted for a request that
        /// matches this one.
        replaces: OneOrMore<Text>,
        /// With a `*` in the value: whether all matching values share one counter. By default
        /// false: each value has its own counter.
        share_threshold: Flag,
        /// Accepted without effect, because no metric has a label with a value of a request.
        detailed_metric: Flag,
        /// Dynamic metadata that the caller receives while this limit is not exceeded.
        metadata: Anything,
        /// The possible next entries.
        descriptors: List<DescriptorNode>,
    }
}
