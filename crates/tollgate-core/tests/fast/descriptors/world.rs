use std::sync::Arc;

use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::policy::descriptors::{
    Allowance, Descriptor, DescriptorLevel, DescriptorPlan, DescriptorRule, Domain, Hits, Node,
    NodeValue, Pattern, Sharing,
};
use tollgate_core::policy::{LimitBinding, MatchMode};
use tollgate_core::{Algorithm, Cost, KeyedHash, Limit, Millis, Policy};

pub(crate) struct Unhashed;

impl KeyedHash for Unhashed {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        [bytes.len() as u8; 16]
    }
}

pub(crate) type Entries<'a> = &'a [(&'a str, &'a str)];

/// Returns a node for `key`, or for `key=value`. If the value contains `*`, it is a pattern.
pub(crate) fn node(entry: &str, rule: Option<DescriptorRule>, children: Vec<Node>) -> Node {
    let (key, value) = entry.split_once('=').unwrap_or((entry, ""));
    let value = match value {
        "" => NodeValue::Any,
        value => Pattern::parse(value).map_or_else(
            |_| NodeValue::Exact(value.into()),
            |pattern| NodeValue::Wildcard(pattern, Sharing::PerValue),
        ),
    };
    Node { key: key.into(), value, rule, children: DescriptorLevel::new(children).unwrap() }
}

pub(crate) fn limited(index: usize) -> Option<DescriptorRule> {
    Some(DescriptorRule::new(Allowance::Limit(index)))
}

/// Returns a policy with the single domain `edge`. The names of its limits are numbers.
pub(crate) fn policy(tree: Vec<Node>) -> Policy {
    let window = FixedWindow::new(10, Millis::new(60_000), Anchor::Calendar).unwrap();
    let limit = |index: usize| LimitBinding {
        limit: Arc::new(Limit::new(&index.to_string(), Algorithm::FixedWindow(window)).unwrap()),
        per: Vec::new(),
    };
    let policy =
        Policy::new(Vec::new(), (0..4).map(limit).collect(), Vec::new(), MatchMode::default());
    policy.unwrap().with_descriptors(vec![edge(tree)]).unwrap()
}

pub(crate) fn edge(tree: Vec<Node>) -> Domain {
    Domain { name: "edge".into(), tree: DescriptorLevel::new(tree).unwrap(), ..Domain::default() }
}

/// Returns the plan for descriptors that each charge one unit.
pub(crate) fn plan<'p>(policy: &'p Policy, descriptors: &[Entries<'_>]) -> DescriptorPlan<'p> {
    let descriptors: Vec<_> = descriptors.iter().map(|entries| one(entries)).collect();
    policy.plan_descriptors("edge", &descriptors, &Unhashed)
}

pub(crate) fn one<'e>(entries: Entries<'e>) -> Descriptor<'e, &'e str> {
    Descriptor { entries, hits: Hits::Charge(Cost::ONE), rate: None }
}
