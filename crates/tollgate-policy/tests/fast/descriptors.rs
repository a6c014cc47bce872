//! The meaning of the keys of a descriptor tree, and their defaults.

use tollgate_core::policy::OnFailure;
use tollgate_core::policy::descriptors::{
    Allowance, Counting, DescriptorLevel, DescriptorRule, Metadata, Node, NodeMode, NodeValue,
    Sharing,
};
use tollgate_policy::{LoadedPolicy, parse};

fn loaded(text: &str) -> LoadedPolicy {
    parse("shop.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Returns a file with limits `a` and `b`, and a domain `edge` with this tree.
fn level(tree: &str) -> DescriptorLevel {
    let text = format!(
        "limits: {{ a: {{ quota: 1, window: 1s }}, b: {{ quota: 2, window: 1s }} }}\n\
         descriptors: [{{ domain: edge, tree: {tree} }}]\n"
    );
    loaded(&text).policy.descriptors("edge").unwrap().tree.clone()
}

fn node(keys: &str) -> Node {
    level(&format!("[{{ key: path, {keys} }}]")).nodes()[0].clone()
}

fn rule(keys: &str) -> DescriptorRule {
    node(keys).rule.unwrap()
}

#[test]
fn domains_say_how_they_count_and_fail() {
    let loaded = loaded(
        "limits: {}
answers: { on_failure: allow }
descriptors:
  - { domain: shop, counting: each, on_failure: deny, tree: [{ key: a, blocked: true }] }
  - { domain: edge, tree: [{ key: a }] }
",
    );
    let policy = &loaded.policy;
    let names: Vec<&str> = policy.domains().iter().map(|domain| &*domain.name).collect();
    assert_eq!(names, ["edge", "shop"]);
    let settings_of = |name: &str| {
        let domain = policy.descriptors(name).unwrap();
        (domain.counting, domain.on_failure)
    };
    assert_eq!(settings_of("shop"), (Counting::Each, OnFailure::Deny));
    assert_eq!(settings_of("edge"), (Counting::Atomic, OnFailure::Allow));
    assert!(policy.descriptors("Edge").is_none());
    assert!(policy.rules().is_empty());
}

#[test]
fn values_are_exact_patterns_or_any() {
    assert_eq!(node("limit: a").value, NodeValue::Any);
    assert_eq!(node("value: 007, limit: a").value, NodeValue::Exact("007".into()));
    assert_eq!(node("value: true, limit: a").value, NodeValue::Exact("true".into()));
    for (keys, sharing) in [
        ("", Sharing::PerValue),
        (", share_threshold: false", Sharing::PerValue),
        (", share_threshold: true", Sharing::Shared),
    ] {
        let node = node(&format!("value: /a/*/b, limit: a{keys}"));
        let NodeValue::Wildcard(pattern, found) = node.value else { panic!("{:?}", node.value) };
        assert_eq!((pattern.as_str(), found), ("/a/*/b", sharing));
    }
}

#[test]
fn a_node_says_how_much_is_allowed_or_nothing() {
    assert_eq!(rule("limit: b").allowance, Allowance::Limit(1));
    assert_eq!(rule("unlimited: true").allowance, Allowance::Unlimited);
    assert_eq!(rule("blocked: true").allowance, Allowance::Blocked);
    assert!(node("value: /health").rule.is_none());
    assert!(node("unlimited: false, blocked: false").rule.is_none());
}

#[test]
fn what_is_not_written_of_a_limit_is_plain() {
    let plain = rule("limit: a");
    assert_eq!((plain.name, plain.mode), (None, NodeMode::Enforce));
    assert_eq!(plain.metadata, Metadata::Null);
    assert!(plain.replaces.is_empty());
    assert_eq!(rule("limit: a, mode: enforce").mode, NodeMode::Enforce);
    assert_eq!(rule("limit: a, mode: shadow").mode, NodeMode::Shadow);
    assert_eq!(rule("limit: a, mode: quota").mode, NodeMode::Quota);
    assert_eq!(rule("limit: a, name: Per address!").name.as_deref(), Some("Per address!"));
}

#[test]
fn replaced_are_names_of_descriptors_or_limits() {
    let tree = level(
        "[{ key: a, limit: a, name: users, replaces: [b, deep] },
          { key: b, limit: b, descriptors: [{ key: c, blocked: true, name: deep, replaces: users }] }]",
    );
    let first = tree.nodes()[0].rule.as_ref().unwrap();
    assert_eq!(first.replaces, [Box::from("b"), Box::from("deep")]);
    let deep = tree.nodes()[1].children.nodes()[0].rule.as_ref().unwrap();
    assert_eq!(deep.replaces, [Box::from("users")]);
}

#[test]
fn metadata_is_handed_on_as_it_is_written() {
    let rule = rule(
        "limit: a, metadata: { tier: gold, 7: [1, -2.5, 1e3, '4', true, ~, inf], deep: { x: 0x10 } }",
    );
    let text = |text: &str| Metadata::Text(text.into());
    let numbers = vec![
        Metadata::Number(1.0),
        Metadata::Number(-2.5),
        Metadata::Number(1000.0),
        text("4"),
        Metadata::Bool(true),
        Metadata::Null,
        text("inf"),
    ];
    let deep = Metadata::Map(vec![("x".into(), text("0x10"))]);
    let expected = Metadata::Map(vec![
        ("tier".into(), text("gold")),
        ("7".into(), Metadata::List(numbers)),
        ("deep".into(), deep),
    ]);
    assert_eq!(rule.metadata, expected);
}

#[test]
fn a_tree_can_be_as_deep_as_a_file() {
    let nested = |depth: usize| {
        (1..depth).fold("[{ key: k, limit: a }]".to_owned(), |below, _| {
            format!("[{{ key: k, descriptors: {below} }}]")
        })
    };
    let mut level = &level(&nested(14));
    let mut depth = 0;
    while let Some(node) = level.nodes().first() {
        (level, depth) = (&node.children, depth + 1);
    }
    assert_eq!(depth, 14);
    let text = format!("limits: {{}}\ndescriptors: [{{ domain: edge, tree: {} }}]\n", nested(15));
    assert!(parse("deep.yaml", &text).unwrap_err().to_string().contains("nested more than"));
}
