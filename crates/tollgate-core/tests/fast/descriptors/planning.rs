use tollgate_core::policy::descriptors::{
    Allowance, Descriptor, DescriptorOutcome, DescriptorRule, Hits, Limited, NodeMode, NodeValue,
    QuotaGroup, Rate, Sharing, TimeUnit,
};
use tollgate_core::{Cost, Policy};

use crate::descriptors::world::{Entries, Unhashed, limited, node, one, plan, policy};

fn counted(policy: &Policy, entries: Entries<'_>) -> Limited {
    match plan(policy, &[entries]).descriptors.remove(0).outcome {
        DescriptorOutcome::Limited(limited) => limited,
        other => panic!("{entries:?}: {other:?}"),
    }
}

fn rule(mode: NodeMode) -> Option<DescriptorRule> {
    Some(DescriptorRule { mode, ..DescriptorRule::new(Allowance::Limit(0)) })
}

#[test]
fn each_value_has_a_counter_and_no_two_descriptors_share_one() {
    let below = vec![node("b", limited(0), Vec::new())];
    let policy = policy(vec![
        node("a", limited(0), below),
        node("a_b", limited(0), Vec::new()),
        node("b", limited(0), Vec::new()),
    ]);
    let descriptors: [Entries<'_>; 6] = [
        &[("a", "b_c")],
        &[("a_b", "c")],
        &[("a", "b"), ("b", "c")],
        &[("a", "")],
        &[("b", "b_c")],
        &[("a", "x")],
    ];
    for (index, one) in descriptors.iter().enumerate() {
        for other in &descriptors[..index] {
            assert_ne!(counted(&policy, one).subject, counted(&policy, other).subject);
        }
    }
}

#[test]
fn values_of_a_shared_pattern_have_one_counter_also_above_the_rule() {
    let share = |mut node: tollgate_core::policy::descriptors::Node| {
        if let NodeValue::Wildcard(_, sharing) = &mut node.value {
            *sharing = Sharing::Shared;
        }
        node
    };
    let below = vec![node("user", limited(1), Vec::new())];
    let policy = policy(vec![
        share(node("path=/search*", limited(0), below)),
        node("path=/own*", limited(0), Vec::new()),
    ]);
    let subject = |entries: Entries<'_>| counted(&policy, entries).subject;
    assert_eq!(subject(&[("path", "/search/a")]), subject(&[("path", "/search/b")]));
    assert_eq!(
        subject(&[("path", "/search/a"), ("user", "7")]),
        subject(&[("path", "/search"), ("user", "7")])
    );
    assert_ne!(
        subject(&[("path", "/search/a"), ("user", "7")]),
        subject(&[("path", "/search/a"), ("user", "8")])
    );
    assert_ne!(subject(&[("path", "/own/a")]), subject(&[("path", "/own/b")]));
}

#[test]
fn a_limit_of_the_request_goes_before_the_tree_and_counts_apart() {
    let policy =
        policy(vec![node("a", Some(DescriptorRule::new(Allowance::Unlimited)), Vec::new())]);
    let brought = |domain: &str, requests, unit| {
        let descriptor = Descriptor { rate: Some(Rate { requests, unit }), ..one(&[("a", "b")]) };
        policy.plan_descriptors(domain, &[descriptor], &Unhashed).descriptors.remove(0)
    };
    let DescriptorOutcome::Limited(minute) = brought("edge", 7, TimeUnit::Minute).outcome else {
        panic!()
    };
    assert_eq!(minute.limit.capacity(), 7);
    assert_eq!(minute.limit.window(), TimeUnit::Minute.window());
    let DescriptorOutcome::Limited(raised) = brought("edge", 9, TimeUnit::Minute).outcome else {
        panic!()
    };
    assert_eq!((raised.limit.name(), &raised.subject), (minute.limit.name(), &minute.subject));
    let DescriptorOutcome::Limited(hour) = brought("edge", 7, TimeUnit::Hour).outcome else {
        panic!()
    };
    assert_ne!(hour.limit.name(), minute.limit.name());
    assert_eq!(brought("edge", 0, TimeUnit::Day).outcome, DescriptorOutcome::Blocked);
    // As in the reference server, a domain that is not configured limits nothing.
    assert_eq!(brought("other", 7, TimeUnit::Minute).outcome, DescriptorOutcome::Unmatched);

    let tree = crate::descriptors::world::policy(vec![node("a", limited(0), Vec::new())]);
    assert_ne!(counted(&tree, &[("a", "b")]).subject, minute.subject);
}

#[test]
fn what_is_replaced_is_not_counted_and_still_replaces() {
    let named = |name: &str, replaces: &[&str]| {
        let replaces = replaces.iter().map(|name| (*name).into()).collect();
        let name = Some(name.into());
        Some(DescriptorRule { name, replaces, ..DescriptorRule::new(Allowance::Limit(0)) })
    };
    let free =
        DescriptorRule { name: Some("free".into()), ..DescriptorRule::new(Allowance::Unlimited) };
    let policy = policy(vec![
        node("one", named("one", &["two", "free"]), Vec::new()),
        node("two", named("two", &["2"]), Vec::new()),
        node("three", limited(2), Vec::new()),
        node("four", Some(free), Vec::new()),
    ]);
    let all: [Entries<'_>; 4] =
        [&[("one", "x")], &[("two", "x")], &[("three", "x")], &[("four", "x")]];
    let plan = plan(&policy, &all);
    let replaced: Vec<_> =
        plan.descriptors.iter().map(|one| one.outcome == DescriptorOutcome::Replaced).collect();
    assert_eq!(replaced, [false, true, true, false]);
    assert_eq!(plan.descriptors[3].outcome, DescriptorOutcome::Unlimited);
}

#[test]
fn quotas_of_one_model_stand_and_fall_together() {
    let quota = || rule(NodeMode::Quota);
    let policy = policy(vec![
        node("tenant", quota(), Vec::new()),
        node("plain", limited(0), Vec::new()),
        node("backend_name", None, vec![node("model_name_override", quota(), Vec::new())]),
        node("model_name_override", None, vec![node("backend_name", quota(), Vec::new())]),
        node("backend_name=of", None, vec![node("zone", quota(), Vec::new())]),
    ]);
    let plan = plan(
        &policy,
        &[
            &[("tenant", "a")],
            &[("plain", "a")],
            &[("backend_name", "x"), ("model_name_override", "m")],
            &[("model_name_override", "m"), ("backend_name", "x")],
            &[("backend_name", "x"), ("model_name_override", "n")],
            &[("tenant", "a")],
            &[("tenant", "b")],
            &[("backend_name", "of"), ("zone", "1")],
            &[("backend_name", "of"), ("zone", "2")],
        ],
    );
    let groups: Vec<_> = plan.descriptors.iter().map(|one| one.group).collect();
    let group = |index| Some(QuotaGroup(index));
    let models = [group(0), None, group(2), group(2), group(4), group(0), group(6)];
    assert_eq!(groups, [&models[..], &[group(7), group(7)]].concat());
}

#[test]
fn equal_descriptors_are_one_charge() {
    let policy = policy(vec![
        node("a", limited(0), Vec::new()),
        node("b", rule(NodeMode::Shadow), Vec::new()),
    ]);
    let take = |units, entries| Descriptor {
        hits: Hits::Charge(Cost::new(units).unwrap()),
        ..one(entries)
    };
    let rate = |requests| Some(Rate { requests, unit: TimeUnit::Second });
    let other_unit = Some(Rate { requests: 7, unit: TimeUnit::Minute });
    let descriptors = [
        take(2, &[("a", "x")]),
        take(1, &[("b", "x")]),
        take(3, &[("a", "x")]),
        Descriptor { hits: Hits::Refund(Cost::ONE), ..one(&[("a", "x")]) },
        take(1, &[("c", "x")]),
        Descriptor { rate: rate(9), ..one(&[("c", "x")]) },
        Descriptor { rate: rate(5), ..one(&[("c", "x")]) },
        Descriptor { rate: other_unit, ..one(&[("c", "x")]) },
    ];
    let plan = policy.plan_descriptors("edge", &descriptors, &Unhashed);
    let charges = plan.charges(|one| one.mode == NodeMode::Enforce);
    assert_eq!(charges.of, [Some(0), None, Some(0), None, None, Some(1), Some(1), Some(2)]);
    let costs: Vec<_> =
        charges.planned.iter().map(|one| (one.limit.capacity(), one.cost.get())).collect();
    assert_eq!(costs, [(10, 5), (5, 2), (7, 1)]);
}
