use tollgate_core::policy::descriptors::{DescriptorLevel, LevelError, MAX_DEPTH};

use crate::descriptors::world::{Entries, edge, limited, node, policy};

/// Returns the tree for the table of cases. The index of its limit identifies the node that a
/// descriptor matches.
fn tree() -> Vec<tollgate_core::policy::descriptors::Node> {
    vec![
        node("address", limited(0), Vec::new()),
        node("address=10.0.0.1", limited(1), vec![node("path", limited(2), Vec::new())]),
        node("path=/search*", limited(1), Vec::new()),
        node("path=/*/orders", limited(2), Vec::new()),
        node("path=/s*", limited(3), Vec::new()),
        node("path=/search/free", None, Vec::new()),
        node("route", None, vec![node("user=*", limited(3), Vec::new())]),
    ]
}

fn met(entries: Entries<'_>) -> Option<usize> {
    let domain = edge(tree());
    let rule = domain.find_match(entries)?.rule;
    match rule.allowance {
        tollgate_core::policy::descriptors::Allowance::Limit(index) => Some(index),
        _ => None,
    }
}

#[test]
fn the_most_specific_node_is_met() {
    let table: [(Entries<'_>, Option<usize>); 18] = [
        (&[("address", "10.0.0.1")], Some(1)),
        (&[("address", "10.0.0.2")], Some(0)),
        (&[("address", "")], Some(0)),
        (&[("Address", "10.0.0.1")], None),
        (&[("address_10.0.0.1", "")], None),
        (&[("address", "10.0.0.1"), ("path", "/x")], Some(2)),
        // The tree has no node for the second entry below the first one. The node for any value
        // does not match longer descriptors.
        (&[("address", "10.0.0.2"), ("path", "/x")], None),
        (&[("address", "10.0.0.1"), ("path", "/x"), ("more", "y")], None),
        // Nodes with a pattern are tried in the order of the policy: after the node with the exact
        // value, and before the node for any value.
        (&[("path", "/search")], Some(1)),
        (&[("path", "/search/orders")], Some(1)),
        (&[("path", "/shop/orders")], Some(2)),
        (&[("path", "/shop")], Some(3)),
        // An exact node without a rule still takes precedence.
        (&[("path", "/search/free")], None),
        (&[("path", "/")], None),
        (&[("route", "any")], None),
        (&[("route", "any"), ("user", "")], Some(3)),
        (&[("user", "7")], None),
        (&[], None),
    ];
    for (entries, expected) in table {
        assert_eq!(met(entries), expected, "{entries:?}");
    }
}

#[test]
fn there_is_no_going_back() {
    // The exact node has no children. The node with the pattern has children, but the search does
    // not go back to it.
    let below = |index| vec![node("user", limited(index), Vec::new())];
    let domain =
        edge(vec![node("path=/a", limited(0), Vec::new()), node("path=/*", None, below(1))]);
    assert!(domain.find_match(&[("path", "/a"), ("user", "7")]).is_none());
    assert!(domain.find_match(&[("path", "/b"), ("user", "7")]).is_some());
}

#[test]
fn nodes_side_by_side_differ() {
    let twice = |one, other| {
        DescriptorLevel::new(vec![node(one, None, Vec::new()), node(other, None, Vec::new())]).err()
    };
    let error = LevelError::Duplicate { first: 0, second: 1, key: "a".into() };
    assert_eq!(twice("a", "a"), Some(error.clone()));
    assert_eq!(twice("a=b*", "a=b*"), Some(error));
    assert_eq!(twice("a", "a=b"), None);
    // The reference server treats these two descriptors as one.
    assert_eq!(twice("a=b_c", "a_b=c"), None);
    assert_eq!(
        DescriptorLevel::new(vec![node("", None, Vec::new())]).err(),
        Some(LevelError::EmptyKey)
    );
}

#[test]
fn a_policy_refuses_trees_that_are_not_whole() {
    let accepts = |domains| policy(Vec::new()).with_descriptors(domains).is_some();
    assert!(accepts(vec![edge(vec![node("a", limited(3), Vec::new())])]));
    assert!(!accepts(vec![edge(vec![node("a", limited(4), Vec::new())])]));
    assert!(!accepts(vec![edge(Vec::new()), edge(Vec::new())]));
    let chain = |depth: usize| {
        (1..depth).fold(node("a", limited(0), Vec::new()), |below, _| node("a", None, vec![below]))
    };
    assert!(accepts(vec![edge(vec![chain(MAX_DEPTH)])]));
    let deepest = edge(vec![chain(MAX_DEPTH)]);
    for (depth, is_match) in [(MAX_DEPTH - 1, false), (MAX_DEPTH, true), (MAX_DEPTH + 1, false)] {
        let found = deepest.find_match(&vec![("a", "b"); depth]);
        assert_eq!(found.is_some(), is_match, "{depth} entries");
    }
    assert!(!accepts(vec![edge(vec![chain(MAX_DEPTH + 1)])]));
}
