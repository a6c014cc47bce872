//! Worlds in which one guarantee is switched off. The judge must report a violation.

use tollgate_sim::plan::{Action, OverrideEffect};
use tollgate_sim::{Kind, Plan, run, shrink};

use crate::worlds_of;

/// Worlds with lost counters fail if their plan states that no counters are lost. Such a world
/// shrinks to a smaller one that still fails.
#[test]
fn a_loss_that_no_bound_allows_is_found_and_shrinks_to_its_cause() {
    let mut worlds = (0..40).map(|round| Plan { losses: 0, ..Plan::of(round * 8 + 6) });
    let failed = worlds.find(|plan| !run(plan, false).violations.is_empty());
    let plan = failed.expect("one of 40 worlds that lose counters breaks the bound");
    let smallest = shrink(&plan);
    assert!(!smallest.actions.is_empty() && smallest.actions.len() <= plan.actions.len());
    assert!(!run(&smallest, false).violations.is_empty());
}

/// Without the previous shard map, subjects that move start with new windows. The judge must detect
/// this.
#[test]
fn a_new_shard_map_without_the_previous_one_is_found() {
    let mut worlds = worlds_of(Kind::Rebalance, 10).map(|mut plan| {
        plan.losses = 0;
        plan.versions[1].previous = None;
        plan
    });
    assert!(worlds.any(|plan| !run(&plan, false).violations.is_empty()));
}

/// If one node keeps its percentage, the nodes charge different stores. The judge must detect this.
#[test]
fn nodes_with_different_percentages_are_found() {
    let mut worlds = worlds_of(Kind::Rollout, 20).filter(|plan| plan.nodes > 1).map(|mut plan| {
        plan.losses = 0;
        plan.actions.retain(|(_, action)| !matches!(action, Action::Reload { node: 0, .. }));
        plan
    });
    assert!(worlds.any(|plan| !run(&plan, false).violations.is_empty()));
}

/// Returns worlds with overrides in which `change` changes each action that changes an override.
fn worlds_with_changed_overrides(change: fn(&mut Action)) -> impl Iterator<Item = Plan> {
    worlds_of(Kind::Overrides, 40).map(move |mut plan| {
        let actions = plan.actions.iter_mut().map(|(_, action)| action);
        let overrides = actions.filter(|action| matches!(action, Action::Override { .. }));
        overrides.for_each(change);
        plan
    })
}

/// Returns whether the judge reports an effect of an override that no operator set.
fn is_wrong_effect_found(plan: &Plan) -> bool {
    run(plan, false).violations.iter().any(|violation| violation.contains("is not in force"))
}

/// An override has a larger quota than the plan states. The judge must detect this.
#[test]
fn an_override_with_another_quota_is_found() {
    let mut worlds = worlds_with_changed_overrides(|action| {
        if let Action::Override { effect: Some(OverrideEffect::Quota(quota)), .. } = action {
            *quota *= 4;
        }
    });
    assert!(worlds.any(|plan| is_wrong_effect_found(&plan)));
}

/// An override of one subject applies to another subject. The judge must detect this.
#[test]
fn an_override_of_another_subject_is_found() {
    let mut worlds = worlds_with_changed_overrides(|action| {
        if let Action::Override { subject: Some(subject), .. } = action {
            *subject += 1;
        }
    });
    assert!(worlds.any(|plan| is_wrong_effect_found(&plan)));
}

/// An override does not end at the time that its operator chose. The judge must detect this.
#[test]
fn an_override_that_does_not_end_is_found() {
    let mut worlds = worlds_with_changed_overrides(|action| {
        if let Action::Override { lasts, .. } = action {
            *lasts = None;
        }
    });
    assert!(worlds.any(|plan| is_wrong_effect_found(&plan)));
}

/// Servers of worlds with overrides lose counters. If the plan states that no counters are lost, the
/// judge must detect the loss.
#[test]
fn counters_that_are_lost_beside_overrides_are_found() {
    let mut worlds = worlds_of(Kind::Overrides, 100).map(|plan| Plan { losses: 0, ..plan });
    assert!(worlds.any(|plan| is_over_admission_found(&plan)));
}

/// A node that keeps its old policy admits another quota. The judge must detect this.
#[test]
fn a_node_that_misses_a_reload_is_found() {
    let mut worlds = worlds_of(Kind::Reloads, 20).map(|mut plan| {
        let last = plan.last_version;
        let is_last = |action: &Action| {
            matches!(action, Action::Reload { node: 0, version } if *version == last)
        };
        plan.actions.retain(|(_, action)| !is_last(action));
        plan
    });
    assert!(worlds.any(|plan| !run(&plan, false).violations.is_empty()));
}

/// Returns whether the judge reports that the store admitted too many units in the world of `plan`.
fn is_over_admission_found(plan: &Plan) -> bool {
    run(plan, false).violations.iter().any(|violation| violation.starts_with("the store admitted"))
}

/// Returns the time at which the plan promotes a replica. Returns `None` if it promotes none.
fn promotion(plan: &Plan) -> Option<u64> {
    let mut actions = plan.actions.iter();
    actions.find(|(_, action)| matches!(action, Action::Promote(_))).map(|(at, _)| *at)
}

/// A promotion in a cluster loses the charges that the replica has not received. If the plan states
/// that no counters are lost, the judge must detect the loss.
#[test]
fn charges_that_a_promotion_in_a_cluster_loses_are_found() {
    let worlds = worlds_of(Kind::Cluster, 200).filter(|plan| promotion(plan).is_some());
    let mut worlds = worlds.filter(|plan| plan.nodes > 1).map(|mut plan| {
        (plan.losses, plan.failovers) = (0, Vec::new());
        plan
    });
    assert!(worlds.any(|plan| is_over_admission_found(&plan)));
}

/// After a promotion in a cluster, a single node replays its charges, so the judge grants no loss of
/// counters. If the node has lost the record of its charges by a restart that the plan does not
/// state, the judge must detect the loss.
#[test]
fn charges_that_the_only_node_of_a_cluster_does_not_replay_are_found() {
    let is_alone = |plan: &Plan| plan.nodes == 1 && plan.restarts == 0;
    let mut worlds = worlds_of(Kind::Cluster, 200).filter(is_alone).filter_map(|mut plan| {
        let promoted = promotion(&plan)?;
        let restart = [Action::StopNode(0), Action::StartNode(0)];
        plan.actions.extend(restart.map(|action| (promoted, action)));
        plan.actions.sort_by_key(|(at, _)| *at);
        Some(plan)
    });
    assert!(worlds.any(|plan| is_over_admission_found(&plan)));
}

/// Two servers of a cluster charge the same slots: the new owner, and the old owner, which ignores
/// that the slots have moved. The judge must detect this.
#[test]
fn a_server_that_keeps_serving_slots_that_have_moved_is_found() {
    let mut worlds = worlds_of(Kind::Cluster, 200).filter_map(|mut plan| {
        let end = |(_, action): &(u64, Action)| match action {
            Action::EndMove(from) => Some(*from),
            _ => None,
        };
        let (position, from) =
            plan.actions.iter().enumerate().find_map(|(index, it)| Some((index, end(it)?)))?;
        let moved = plan.actions[position].0;
        plan.actions.insert(position + 1, (moved, Action::KeepSlots(from)));
        plan.actions.retain(|(_, action)| *action != Action::Gossip(from));
        Some(plan)
    });
    assert!(worlds.any(|plan| is_over_admission_found(&plan)));
}

/// The windows of a server end when its clock is set ahead. If the plan states that none ends, the
/// judge must detect the units of the next window.
#[test]
fn windows_that_end_because_a_clock_was_set_are_found() {
    let is_without_loss = |plan: &Plan| {
        let mut actions = plan.actions.iter();
        !actions.any(|(_, it)| matches!(it, Action::Promote(_) | Action::Start { .. }))
    };
    let worlds = worlds_of(Kind::ServerClocks, 100).filter(is_without_loss);
    let mut worlds = worlds.map(|plan| Plan { losses: 0, ..plan });
    assert!(worlds.any(|plan| is_over_admission_found(&plan)));
}

/// A node refuses to reload a policy with another number of nodes. If the plan states that this
/// policy is valid, the judge must detect the refusal.
#[test]
fn another_number_of_nodes_that_a_node_refuses_is_found() {
    let mut worlds = worlds_of(Kind::Membership, 20).map(|mut plan| {
        plan.versions.iter_mut().for_each(|version| version.defect = None);
        plan
    });
    assert!(worlds.any(|plan| {
        let violations = run(&plan, false).violations;
        violations.iter().any(|violation| violation.contains("refused a valid policy"))
    }));
}
