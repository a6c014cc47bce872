//! The requirements that every world must satisfy.
//!
//! Before the first fault and after the last one, limits are exact: the history checker accepts the
//! history of all nodes, the store makes every decision, a subject that was refused has used its
//! whole limit, and a retry at the told time is admitted. While faults last, the bounds of
//! `docs/bounds.md` hold with the numbers of the world. No decision ever takes longer than the
//! deadline.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tollgate_conformance::history::{Allowance, History};
use tollgate_core::Cost;
use tollgate_stores::deadline::{DEFAULT_BUDGET, TIMER_GRAIN};
use tollgate_stores::quota_lease::{MAX_LEASE_UNITS, max_early_refusal};
use tollgate_stores::rebalance::max_double_count;

use crate::node::{Answer, Phase, Source};
use crate::plan::{Kind, Plan};

/// The most violations that a world reports.
const MAX_VIOLATIONS: usize = 20;

/// Counts of one subject's requests to the limit of 120 s.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Units that the store admitted.
    by_store: u64,
    /// Units that nodes admitted without the store.
    by_nodes: u64,
    /// The units among them that the store may have charged too.
    uncertain: u64,
    /// Units that the store may have charged although the request was refused or not answered.
    leaked: u64,
    /// Whether the store refused a request because of this limit.
    is_used_up: bool,
}

/// The figures of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Decisions.
    pub decisions: u64,
    /// Decisions that nodes made without the store.
    pub by_nodes: u64,
    /// The longest wait for a decision, in ms.
    pub longest_wait: u64,
    /// The largest share of the bound on units that the store admits in faults, in percent.
    pub store_bound: u64,
    /// The largest share of the bound on units that nodes admit without the store, in percent.
    pub local_bound: u64,
}

/// Units of all subjects that the nodes report as lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// Units that nodes admitted without the store, and did not charge to the store later.
    pub(crate) local: u64,
    /// Admitted by nodes alone, and refused by the store afterwards because the limit was used up.
    pub(crate) exceeded: u64,
    /// Taken in advance, and of no use.
    pub(crate) leased: u64,
    /// Charged for a call that another limit refused, and not refunded.
    pub(crate) unrefunded: u64,
}

/// The judge of one world.
#[derive(Debug)]
pub(crate) struct Judge {
    max_wait: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tallies: BTreeMap<(Phase, String), Tally>,
    /// The units that each subject had been admitted when faults were over.
    admitted_before_drain: BTreeMap<String, u64>,
    figures: Figures,
    violations: Vec<String>,
}

impl Judge {
    pub(crate) fn new(plan: &Plan) -> Self {
        // A subject's usage is transferred before its first decision at another store.
        let transfer = match plan.kind {
            Kind::Rebalance | Kind::Rollout => DEFAULT_BUDGET,
            _ => Duration::ZERO,
        };
        let deadline = Duration::from_millis(plan.deadline) + TIMER_GRAIN;
        Self { max_wait: deadline + transfer, state: Mutex::default() }
    }

    /// Records the answer to a request; `None` if its node ended.
    pub(crate) fn record(&self, phase: Phase, subject: &str, path: &str, answer: Option<Answer>) {
        let state = &mut *self.state.lock();
        let is_charged = path != "/short";
        let tally = state.tallies.entry((phase, subject.to_owned())).or_default();
        let Some(answer) = answer else {
            tally.leaked += u64::from(is_charged);
            return;
        };
        let waited = u64::try_from(answer.waited.as_millis()).unwrap_or(u64::MAX);
        state.figures.decisions += 1;
        state.figures.by_nodes += u64::from(answer.source != Source::Store);
        state.figures.longest_wait = state.figures.longest_wait.max(waited);
        match answer.source {
            _ if !is_charged => {}
            Source::Store if answer.is_admitted => tally.by_store += 1,
            Source::Store => tally.is_used_up |= answer.is_long_used_up,
            Source::Local => tally.by_nodes += u64::from(answer.is_admitted),
            Source::Uncertain if answer.is_admitted => {
                tally.by_nodes += 1;
                tally.uncertain += 1;
            }
            Source::Uncertain | Source::Nothing => tally.leaked += 1,
        }
        if answer.waited > self.max_wait {
            let most = self.max_wait;
            state.violates(format!("a decision on {subject} took {waited} ms, beyond {most:?}"));
        }
        if answer.source == Source::Nothing {
            state.violates(format!("no decision on {subject}"));
        }
        if phase.is_calm() && answer.source != Source::Store {
            let source = answer.source;
            state.violates(format!(
                "{phase:?}: {subject} was decided by {source:?}, without a fault"
            ));
        }
    }

    /// Records that a request was refused at the time that the last refusal had named.
    pub(crate) fn refused_after_wait(&self, node: usize, subject: &str) {
        self.state.lock().violates(format!(
            "{subject} was refused by node {node} at the time at which it should be admitted"
        ));
    }

    /// Records a failure of the world itself.
    pub(crate) fn broken(&self, what: impl fmt::Display) {
        self.state.lock().violates(what.to_string());
    }

    /// Returns the subjects of the faults, and notes what they were admitted so far.
    pub(crate) fn begin_drain(&self, plan: &Plan) -> Vec<String> {
        let state = &mut *self.state.lock();
        // Otherwise windows have ended by then.
        if plan.subject_life < u64::MAX {
            return Vec::new();
        }
        let during = state.tallies.iter().filter(|((phase, _), _)| *phase == Phase::During);
        let admitted =
            during.map(|((_, subject), tally)| (subject.clone(), tally.by_store + tally.by_nodes));
        state.admitted_before_drain = admitted.collect();
        state.admitted_before_drain.keys().cloned().collect()
    }

    /// Checks everything, and returns the figures and the violations.
    pub(crate) fn finish(
        &self,
        plan: &Plan,
        histories: [(&str, History); 2],
        lost: Lost,
    ) -> (Figures, Vec<String>) {
        let state = &mut *self.state.lock();
        for (when, history) in histories {
            // The status of a charge may include a lease that its node takes at the same time.
            let leased = unused_units(plan) * plan.nodes as u64;
            let held = held_in_flight(plan);
            let step_by_step = plan.kind == Kind::Memcached;
            let allowance = Allowance { leased, held, step_by_step, ..Allowance::default() };
            let report = history.check(allowance);
            if !report.is_sound() {
                state.violates(format!("the history {when} is not sound: {report}"));
            }
        }
        let tallies = std::mem::take(&mut state.tallies);
        for ((phase, subject), tally) in &tallies {
            if phase.is_calm() {
                state.check_exact(plan, *phase, subject, tally);
            } else {
                state.check_faults(plan, subject, tally, lost);
            }
        }
        (state.figures, std::mem::take(&mut state.violations))
    }
}

impl State {
    fn violates(&mut self, what: String) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(what);
        }
    }

    /// Without faults: 0 over, 0 under.
    fn check_exact(&mut self, plan: &Plan, phase: Phase, subject: &str, tally: &Tally) {
        let (first, last) = plan.first_and_last_quota();
        let quota = if phase == Phase::Before { first } else { last };
        let (admitted, least) = (tally.by_store, quota.saturating_sub(early_by_leases(plan)));
        if admitted > quota || (tally.is_used_up && admitted < least) {
            self.violates(format!("{subject} was admitted {admitted} units of {quota}"));
        }
    }

    /// With faults: the bounds.
    fn check_faults(&mut self, plan: &Plan, subject: &str, tally: &Tally, lost: Lost) {
        let (quota, bounds) = (plan.most_quota(), Bounds::of(plan));
        let figures = &mut self.figures;
        figures.store_bound = figures.store_bound.max(tally.by_store * 100 / bounds.by_store);
        figures.local_bound = figures.local_bound.max(tally.by_nodes * 100 / bounds.by_nodes);
        if tally.by_store > bounds.by_store {
            let (admitted, most) = (tally.by_store, bounds.by_store);
            self.violates(format!("the store admitted {subject} {admitted} units, beyond {most}"));
        }
        if tally.by_nodes > bounds.by_nodes {
            let (admitted, most) = (tally.by_nodes, bounds.by_nodes);
            self.violates(format!(
                "nodes alone admitted {subject} {admitted} units, beyond {most}"
            ));
        }
        let total = tally.by_store + tally.by_nodes;
        let before = self.admitted_before_drain.get(subject).copied().unwrap_or(0);
        // When the store refused units of a node, other nodes may have held units in advance. These are
        // admitted afterwards: at most as many as were held, and at most as many as were refused.
        let held = lost.exceeded.min(early_by_leases(plan));
        let most = before.max(quota + tally.uncertain + lost.local) + held;
        let is_drained = before > 0;
        if is_drained && bounds.is_charged_later && total > most {
            self.violates(format!(
                "{subject} was admitted {total} units in the end, beyond {most}: all but {} of the \
                 units that nodes admitted alone can be charged to the store",
                tally.uncertain + lost.local + held
            ));
        }
        let missing =
            tally.leaked + tally.uncertain + bounds.counted_early + lost.leased + lost.unrefunded;
        if tally.is_used_up && total + missing < plan.least_quota() {
            let least = plan.least_quota();
            self.violates(format!(
                "{subject} was refused after {total} units of {least}, and {missing} may be lost"
            ));
        }
    }
}

/// The bounds of one subject while faults last, which is less than a window of 120 s.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Units that the store admits: the limit once, and once more for each loss of counters. A
    /// failover loses nothing if one node makes all decisions.
    by_store: u64,
    /// Units that nodes admit alone: `LocalShare::max_admitted_units` for each window. A loss ends a
    /// window, and a node that starts has its share again, before it knows the store's clock and
    /// after.
    by_nodes: u64,
    /// Units that count as used and were not admitted: those that nodes hold in advance, or held
    /// when they ended, and charges in flight that a transfer between stores counts twice.
    counted_early: u64,
    /// Whether nodes charge to the store all units that they admitted without it.
    is_charged_later: bool,
}

impl Bounds {
    fn of(plan: &Plan) -> Self {
        let (quota, nodes) = (plan.most_quota(), plan.nodes as u64);
        let is_replayed = plan.kind == Kind::Failover && plan.nodes == 1;
        let losses = if is_replayed { 0 } else { plan.losses };
        let share = (quota / nodes).max(1) * nodes;
        Self {
            by_store: quota * (1 + losses),
            by_nodes: share * (1 + losses + 2 * plan.restarts),
            counted_early: early_by_leases(plan)
                + plan.restarts * unused_units(plan)
                + counted_twice(plan),
            is_charged_later: losses == 0 && plan.restarts == 0,
        }
    }
}

/// Returns `QuotaLease::max_unused_units` of the leased limit, if it is leased.
fn unused_units(plan: &Plan) -> u64 {
    let is_leased = plan.versions.iter().any(|version| version.is_leased);
    let share = plan.quotas.1 / (4 * plan.nodes as u64);
    if is_leased { share.min(MAX_LEASE_UNITS) } else { 0 }
}

/// Returns the units that other nodes may hold in advance when a node is refused.
fn leased_by_others(plan: &Plan) -> u64 {
    max_early_refusal(plan.nodes as u64, unused_units(plan))
}

/// Returns the units that requests in flight hold until another limit refuses them: those of a leased
/// limit, and in memcached, where a call on several limits is several steps.
fn held_in_flight(plan: &Plan) -> u64 {
    let in_flight = (plan.nodes * plan.callers) as u64;
    if unused_units(plan) > 0 || plan.kind == Kind::Memcached { in_flight } else { 0 }
}

/// Returns the units of a leased limit that may remain when a request is refused.
fn early_by_leases(plan: &Plan) -> u64 {
    leased_by_others(plan) + held_in_flight(plan)
}

/// Returns `max_double_count` of a subject: each node transfers it in two phases of a move, and once
/// for each percentage, while each caller of the other nodes may have a charge in flight.
fn counted_twice(plan: &Plan) -> u64 {
    let transfers = match plan.kind {
        Kind::Rebalance => 2,
        Kind::Rollout => plan.versions.len() as u64 - 1,
        _ => 0,
    };
    let (nodes, callers) = (plan.nodes as u64, plan.callers as u64);
    max_double_count(nodes * transfers * (nodes - 1) * callers, Cost::ONE)
}
