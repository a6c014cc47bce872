//! The bounds of `docs/bounds.md` for one subject, computed from the numbers of the world.

use tollgate_core::Cost;
use tollgate_stores::FailoverReplay;
use tollgate_stores::quota_lease::{MAX_LEASE_UNITS, max_early_refusal};
use tollgate_stores::rebalance::max_double_count;

use super::{Admission, Tally};
use crate::plan::{Action, Failover, Kind, Plan, StoreKind};

/// The longest time in ms from a promotion until all nodes have replayed their charges.
const REPLAY_TIME: u64 = 4_000;

/// The time in ms within which the answers of the old primary arrive after a promotion.
const LAST_ANSWERS: u64 = 20;

/// The bounds for one subject while faults last. The faults last for less than a window of 120 s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The most units that the store admits: the quota once, and once more for each time that
    /// counters may be lost. The units that failovers lose and those of
    /// [`in_flight`](Self::in_flight) are added.
    pub(super) by_store: u64,
    /// The most units that the store admits beyond the quota for charges that are in flight while
    /// the percentage of a rollout changes.
    pub(super) in_flight: u64,
    /// The most units that nodes admit without the store: `LocalShare::max_admitted_units` for each
    /// window. A loss of counters ends a window. A node that restarts has its share again: once
    /// before it knows the store's clock, and once after that.
    pub(super) by_nodes: u64,
    /// The most units that count as used although no request was admitted for them. They are the
    /// units that nodes took in advance, and charges in flight that a transfer between stores
    /// counts twice.
    pub(super) counted_early: u64,
    /// Whether nodes later charge to the store all units that they admitted without the store.
    pub(super) is_charged_later: bool,
}

impl Bounds {
    /// Returns the bounds of a subject with at most the given quota and with the units of `tally`.
    pub(super) fn of(plan: &Plan, quota: u64, tally: &Tally) -> Self {
        let is_replayed = matches!(plan.kind, Kind::Failover | Kind::Cluster)
            && plan.nodes == 1
            && plan.restarts == 0;
        let (losses, failovers) =
            if is_replayed { (0, 0) } else { (plan.losses, plan.failovers.len() as u64) };
        let lost = lost_by_failovers(plan, quota, tally);
        let in_flight = in_flight_at_changes(plan);
        Self {
            by_store: quota * (1 + losses) + lost + in_flight,
            in_flight,
            by_nodes: units_by_nodes(plan, quota, losses + failovers),
            counted_early: early_by_leases(plan)
                + plan.restarts * unused_units(plan)
                + counted_twice(plan),
            is_charged_later: losses + failovers == 0 && plan.restarts == 0,
        }
    }
}

/// Returns the most units of a subject that the failovers of the world lose. If a node stops during
/// a failover, it loses the record of its charges, so the whole quota may be lost.
fn lost_by_failovers(plan: &Plan, quota: u64, tally: &Tally) -> u64 {
    let lost = plan.failovers.iter().map(|failover| {
        let replayed = failover.promoted + REPLAY_TIME;
        let is_stop = |at: u64, action: &Action| {
            matches!(action, Action::StopNode(_)) && (failover.lacks_from..=replayed).contains(&at)
        };
        if plan.actions.iter().any(|(at, action)| is_stop(*at, action)) {
            return quota;
        }
        let nodes = (0..plan.nodes).map(|node| tally.lost_after_first(node, *failover));
        nodes.max().unwrap_or(0).min(quota)
    });
    lost.sum()
}

/// Returns the most units that nodes admit without the store, if counters are lost `losses` times.
/// Each node has a share, and the share again after each loss, and twice after each restart.
fn units_by_nodes(plan: &Plan, quota: u64, losses: u64) -> u64 {
    let nodes = plan.nodes as u64;
    if plan.kind != Kind::Membership {
        return (quota / nodes).max(1) * nodes * (1 + losses + 2 * plan.restarts);
    }
    // The fewer nodes the policy states, the larger is the share of each node.
    let stated = plan.versions.iter().filter_map(|version| version.nodes);
    let fewest = stated.min().unwrap_or(plan.nodes) as u64;
    let starts_of = |node| {
        let starts = plan.actions.iter();
        starts.filter(|(_, action)| *action == Action::StartNode(node)).count() as u64
    };
    let shares_of = |node| u64::from(!plan.absent_first.contains(&node)) + 2 * starts_of(node);
    (quota / fewest).max(1) * (0..plan.nodes).map(shares_of).sum::<u64>()
}

/// Returns `QuotaLease::max_unused_units` of the second limit. Returns 0 if the limit is leased in
/// no version of the policy.
pub(super) fn unused_units(plan: &Plan) -> u64 {
    let is_leased = plan.versions.iter().any(|version| version.is_leased);
    let share = plan.quotas.1 / (4 * plan.nodes as u64);
    if is_leased { share.min(MAX_LEASE_UNITS) } else { 0 }
}

/// Returns the most units of quota leases that other nodes can hold when the store refuses a charge
/// of one node.
fn leased_by_others(plan: &Plan) -> u64 {
    max_early_refusal(plan.nodes as u64, unused_units(plan))
}

/// Returns the most units that requests in flight hold although another limit will refuse them.
/// Such units exist on a leased limit. In memcached they exist on every limit, because a call on
/// several limits has several steps.
pub(super) fn held_in_flight(plan: &Plan) -> u64 {
    let in_flight = (plan.nodes * plan.callers) as u64;
    if unused_units(plan) > 0 || plan.store == StoreKind::Memcached { in_flight } else { 0 }
}

/// Returns the most decisions that nodes make alone without a fault. In memcached, the
/// compare-and-swaps of a node fail while the other nodes are first, and a request that waits until
/// its deadline is decided by its node. This happens to callers of one node that wait together.
pub(super) fn max_contended(plan: &Plan) -> u64 {
    let has_rivals = plan.store == StoreKind::Memcached && plan.nodes > 1;
    if has_rivals { plan.callers as u64 } else { 0 }
}

/// Returns the most units of a leased limit that can remain unused when a request is refused.
pub(super) fn early_by_leases(plan: &Plan) -> u64 {
    leased_by_others(plan) + held_in_flight(plan)
}

/// Returns the most units of one subject that are charged at the store that the subject leaves, and
/// that are missing at the other store. A charge that is in flight while its node changes the
/// percentage of a rollout can arrive after another caller of this node has read the subject's
/// usage. See `rollout::max_over_admission`.
///
/// With several nodes, `Plan::losses` contains the whole quota for each change.
fn in_flight_at_changes(plan: &Plan) -> u64 {
    if plan.kind != Kind::Rollout || plan.nodes > 1 {
        return 0;
    }
    let percentages = plan.versions.windows(2);
    let changes = percentages.filter(|pair| pair[0].percent != pair[1].percent).count();
    (changes * (plan.callers - 1)) as u64
}

/// Returns `max_double_count` of a subject: the most units that transfers count twice. In a
/// rebalance, each node transfers a subject in two phases. In a rollout, each node transfers a
/// subject once for each percentage. During each transfer, each other caller, of any node, may have
/// a charge in flight.
fn counted_twice(plan: &Plan) -> u64 {
    let transfers = match plan.kind {
        Kind::Rebalance => 2,
        Kind::Rollout => plan.versions.len() as u64 - 1,
        _ => 0,
    };
    let (nodes, callers) = (plan.nodes as u64, plan.callers as u64);
    max_double_count(nodes * transfers * (nodes * callers - 1), Cost::ONE)
}

impl Tally {
    /// Returns the most units that `failover` loses if `node` is the first node that charges the
    /// promoted server. `node` replays what it read last, and the other nodes replay later.
    fn lost_after_first(&self, node: usize, failover: Failover) -> u64 {
        let Failover { lacks_from, promoted } = failover;
        let count = |is_counted: &dyn Fn(&Admission) -> bool| {
            self.admissions.iter().filter(|it| is_counted(it)).count() as u64
        };
        let own = self.admissions.iter().filter(|it| it.node == node && it.answered <= promoted);
        let last_read = own.map(|it| it.sent).max().unwrap_or(0).max(lacks_from);
        let before = last_read..=promoted + LAST_ANSWERS;
        let elsewhere = count(&|it| it.node != node && before.contains(&it.answered));
        let replayed = promoted + REPLAY_TIME;
        let meanwhile = count(&|it| (promoted..=replayed).contains(&it.answered));
        FailoverReplay::<()>::max_lost_units(elsewhere, meanwhile)
    }
}
