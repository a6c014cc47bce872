//! Describes descriptor trees in words, for `tollgate check`.

use tollgate_core::Policy;
use tollgate_core::policy::descriptors::{
    Allowance, Counting, DescriptorLevel, DescriptorRule, Domain, Metadata, Node, NodeMode,
    NodeValue, Sharing,
};
use tollgate_core::policy::{LimitBinding, OnFailure};

/// Returns the title for the description of a descriptor tree, for example
/// `descriptors of edge, each counted separately`.
pub(crate) fn title(domain: &Domain) -> String {
    let counting = match domain.counting {
        Counting::Atomic => "all descriptors of a request counted or none",
        Counting::Each => "each counted separately",
    };
    let on_failure = match domain.on_failure {
        OnFailure::Local => "",
        OnFailure::Allow => "; admitted while the store does not answer",
        OnFailure::Deny => "; refused while the store does not answer",
    };
    format!("descriptors of {}, {counting}{on_failure}", domain.name)
}

/// Returns a row for every descriptor in the tree that has settings. A row contains the keys and
/// values of the descriptor, and a description of its settings.
pub(crate) fn rows(policy: &Policy, domain: &Domain) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    add_rows(policy, &domain.tree, "", &mut rows);
    rows
}

fn add_rows(
    policy: &Policy,
    level: &DescriptorLevel,
    above: &str,
    rows: &mut Vec<(String, String)>,
) {
    for node in level.nodes() {
        let path = format!("{above}{}", entry(node));
        match &node.rule {
            Some(rule) => rows.push((path.clone(), text(policy, rule))),
            None if node.children.is_empty() => rows.push((path.clone(), "no limit".to_owned())),
            None => {}
        }
        add_rows(policy, &node.children, &format!("{path}, "), rows);
    }
}

fn entry(node: &Node) -> String {
    match &node.value {
        NodeValue::Any => node.key.to_string(),
        NodeValue::Exact(value) => format!("{}={value}", node.key),
        NodeValue::Wildcard(pattern, Sharing::PerValue) => {
            format!("{}={}", node.key, pattern.as_str())
        }
        NodeValue::Wildcard(pattern, Sharing::Shared) => {
            format!("{}={} (all together)", node.key, pattern.as_str())
        }
    }
}

fn text(policy: &Policy, rule: &DescriptorRule) -> String {
    let mut text = match rule.allowance {
        Allowance::Limit(index) => policy.limits()[index].limit.name().to_owned(),
        Allowance::Unlimited => "unlimited".to_owned(),
        Allowance::Blocked => "blocked".to_owned(),
    };
    text.push_str(match rule.mode {
        NodeMode::Enforce => "",
        NodeMode::Shadow => " (shadow)",
        NodeMode::Quota => " (quota)",
    });
    if let Some(name) = &rule.name {
        text.push_str(&format!("; name {name}"));
    }
    if !rule.replaces.is_empty() {
        text.push_str(&format!("; replaces {}", rule.replaces.join(", ")));
    }
    if rule.metadata != Metadata::Null {
        text.push_str("; with metadata");
    }
    text
}

/// Returns whether a descriptor tree of the policy uses the limit of `binding`.
pub(crate) fn uses(policy: &Policy, binding: &LimitBinding) -> bool {
    let is_it = |limit: usize| policy.limits()[limit].limit.name() == binding.limit.name();
    policy.domains().iter().any(|domain| level_uses(&domain.tree, &is_it))
}

fn level_uses(level: &DescriptorLevel, is_it: &impl Fn(usize) -> bool) -> bool {
    level.nodes().iter().any(|node| {
        let allowance = node.rule.as_ref().map(|rule| rule.allowance);
        matches!(allowance, Some(Allowance::Limit(limit)) if is_it(limit))
            || level_uses(&node.children, is_it)
    })
}
