//! The requirements that every world must satisfy, and the judge that checks them.
//!
//! Before the first fault and after the last one, limits are exact. The history checker accepts the
//! history of all nodes. The store makes every decision. A subject that was refused has used its
//! whole limit. A retry at the time that the refusal stated is admitted.
//!
//! While faults last, the bounds of `docs/bounds.md` hold. They are computed from the world's
//! numbers of nodes, callers, losses and restarts. No decision ever takes longer than the deadline.

mod bounds;
mod clocks;
mod effects;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tollgate_conformance::history::{Allowance, History};
use tollgate_redis::BatcherLimits;
use tollgate_stores::deadline::{DEFAULT_BUDGET, TIMER_GRAIN};

use crate::node::{Answer, Source};
use crate::phase::Phase;
use crate::plan::{Kind, OverrideEffect, Plan, StoreKind};

use bounds::{Bounds, early_by_leases, held_in_flight, max_contended, unused_units};

/// The largest number of violations that are reported for a world.
const MAX_VIOLATIONS: usize = 20;

/// The units of one subject on the second limit, which has a window of 120 s.
#[derive(Clone, Debug, Default)]
struct Tally {
    /// Units that the store admitted.
    by_store: u64,
    /// Units that nodes admitted without the store.
    by_nodes: u64,
    /// The units in `by_nodes` that the store may have charged too.
    uncertain: u64,
    /// Units that the store may have charged for requests that were refused or not answered.
    leaked: u64,
    /// Whether the store refused a request of the subject because of this limit.
    is_used_up: bool,
    /// The charges that the store admitted, if the world has failovers.
    admissions: Vec<Admission>,
}

/// A charge that the store admitted, with times in ms since the beginning of the faults.
#[derive(Clone, Copy, Debug)]
struct Admission {
    node: usize,
    sent: u64,
    answered: u64,
}

impl Tally {
    /// Counts the answer to a request that is charged on the limit.
    fn count(&mut self, answer: &Answer) {
        // If an override lifts the limit or blocks the subject, the limit counts nothing.
        let is_limited = matches!(answer.effect, OverrideEffect::Quota(_));
        match answer.source {
            _ if answer.effect == OverrideEffect::Counted => self.leaked += 1,
            _ if !is_limited => {}
            Source::Store if answer.is_admitted => self.by_store += 1,
            Source::Store => self.is_used_up |= answer.is_long_used_up,
            Source::Local => self.by_nodes += u64::from(answer.is_admitted),
            Source::Uncertain if answer.is_admitted => {
                self.by_nodes += 1;
                self.uncertain += 1;
            }
            Source::Uncertain | Source::Nothing => self.leaked += 1,
        }
    }
}

/// Numbers that describe a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// The number of decisions.
    pub decisions: u64,
    /// The number of decisions that nodes made without the store.
    pub by_nodes: u64,
    /// The longest time that a caller waited for a decision, in ms.
    pub longest_wait: u64,
    /// How closely the store approached the bound on the units that it admits beyond a quota while
    /// faults last, for the subject that approached it most: these units in percent of the units
    /// that the bound permits. `None` if the bound permits none.
    pub store_excess: Option<u64>,
    /// How closely nodes approached the bound on the units that they admit without the store, for
    /// the subject that approached it most: the admitted units in percent of the bound.
    pub local_bound: u64,
    /// The largest number of jobs in the queue of a node to a server.
    pub longest_queue: usize,
    /// The number of jobs that nodes rejected because a queue was full.
    pub overloaded: u64,
}

impl Figures {
    fn count(&mut self, answer: &Answer) {
        let waited = u64::try_from(answer.waited.as_millis()).unwrap_or(u64::MAX);
        self.decisions += 1;
        self.by_nodes += u64::from(answer.source != Source::Store);
        self.longest_wait = self.longest_wait.max(waited);
    }
}

/// The units, of all subjects together, that nodes report as lost. Each field has another reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// Units that nodes admitted without the store, and did not charge to the store later.
    pub(crate) local: u64,
    /// Units that nodes admitted without the store, and that the store refused when the nodes
    /// charged them later. The store refused them because the limit was used up.
    pub(crate) exceeded: u64,
    /// Units of quota leases that were lost before a request used them.
    pub(crate) leased: u64,
    /// Units that were charged by a call that another limit refused, and that were not refunded.
    pub(crate) unrefunded: u64,
}

/// The judge of one world. It records the answers to all requests, and finds violations of the
/// requirements.
#[derive(Debug)]
pub(crate) struct Judge {
    plan: Plan,
    max_wait: Duration,
    faults_begun: OnceLock<Instant>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tallies: BTreeMap<Phase, BTreeMap<String, Tally>>,
    /// The units that each subject had been admitted when the faults ended.
    admitted_before_drain: BTreeMap<String, u64>,
    /// The number of decisions that nodes made alone in the phases without faults.
    contended: u64,
    figures: Figures,
    violations: Vec<String>,
}

impl Judge {
    pub(crate) fn new(plan: &Plan) -> Self {
        // After a subject has moved to another shard or store, its usage is transferred before the
        // first decision there.
        let transfer = match plan.kind {
            Kind::Rebalance | Kind::Rollout => DEFAULT_BUDGET,
            _ => Duration::ZERO,
        };
        let deadline = Duration::from_millis(plan.deadline) + TIMER_GRAIN;
        let plan = plan.clone();
        let (faults_begun, state) = (OnceLock::new(), Mutex::default());
        Self { plan, max_wait: deadline + transfer, faults_begun, state }
    }

    /// Records the answer to a request of `subject`. An `answer` of `None` means that the node
    /// ended before it answered.
    pub(crate) fn record(
        &self,
        (node, phase): (usize, Phase),
        subject: &str,
        path: &str,
        answer: Option<Answer>,
    ) {
        let state = &mut *self.state.lock();
        let is_charged = path != "/short";
        let tallies = state.tallies.entry(phase).or_default();
        if !tallies.contains_key(subject) {
            tallies.insert(subject.to_owned(), Tally::default());
        }
        let Some(tally) = tallies.get_mut(subject) else { return };
        let Some(answer) = answer else {
            tally.leaked += u64::from(is_charged);
            return;
        };
        if is_charged {
            tally.count(&answer);
            if !self.plan.failovers.is_empty() && phase == Phase::During {
                tally.admissions.extend(self.admission(node, &answer));
            }
        }
        state.figures.count(&answer);
        // Charges that cannot refuse a request are a second call of the store.
        let calls = if answer.effect == OverrideEffect::Counted { 2 } else { 1 };
        let most = self.max_wait * calls;
        if answer.waited > most {
            let waited = answer.waited.as_millis();
            state.violates(format!("a decision on {subject} took {waited} ms, beyond {most:?}"));
        }
        if answer.source == Source::Nothing {
            state.violates(format!("no decision on {subject}"));
        }
        if is_charged {
            self.check_effect(state, phase, (subject, path), &answer);
        }
        if phase.is_calm() && answer.source != Source::Store {
            state.contended += 1;
            if state.contended > max_contended(&self.plan) {
                let source = answer.source;
                state.violates(format!(
                    "{phase:?}: {subject} was decided by {source:?}, without a fault"
                ));
            }
        }
    }

    /// Returns the admission of a charge that the store has just admitted.
    fn admission(&self, node: usize, answer: &Answer) -> Option<Admission> {
        if answer.source != Source::Store || !answer.is_admitted {
            return None;
        }
        let since = self.faults_begun.get()?.elapsed();
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let sent = millis(since.saturating_sub(answer.waited));
        Some(Admission { node, sent, answered: millis(since) })
    }

    /// Checks an answer of a request that is charged on the limit of 120 s: the override of
    /// `subject` is in force, and the decision is the one that the override requires.
    fn check_effect(
        &self,
        state: &mut State,
        phase: Phase,
        (subject, path): (&str, &str),
        answer: &Answer,
    ) {
        let effect = answer.effect;
        if !self.is_effect_right(phase, subject, answer) {
            state.violates(format!("{phase:?}: {subject} had {effect:?}, which is not in force"));
        }
        // A request on `/both` can also be refused by the other limit.
        let is_wrong = match effect {
            OverrideEffect::Quota(_) => false,
            OverrideEffect::Blocked => answer.is_admitted,
            OverrideEffect::Unlimited | OverrideEffect::Counted => {
                path == "/long" && !answer.is_admitted
            }
        };
        if is_wrong {
            let word = if answer.is_admitted { "admitted" } else { "refused" };
            state.violates(format!("{subject} was {word} although it had {effect:?}"));
        }
    }

    /// Records a violation: a request was refused, although the refusal before it stated this time
    /// for a retry.
    pub(crate) fn refused_after_wait(&self, node: usize, subject: &str) {
        self.state.lock().violates(format!(
            "{subject} was refused by node {node} at the time at which it should be admitted"
        ));
    }

    /// Records the largest number of jobs in a queue, and the number of jobs that nodes rejected
    /// because a queue was full. A queue must not be longer than its bound, and a job may only be
    /// rejected if a queue was full.
    pub(crate) fn check_queues(&self, longest: usize, overloaded: u64) {
        let state = &mut *self.state.lock();
        (state.figures.longest_queue, state.figures.overloaded) = (longest, overloaded);
        let most = BatcherLimits::default().waiting;
        if longest > most || (overloaded > 0 && longest < most) {
            state.violates(format!(
                "a queue had {longest} jobs of {most}, and {overloaded} jobs were rejected"
            ));
        }
    }

    /// Records a failure of the simulation itself as a violation.
    pub(crate) fn broken(&self, what: impl fmt::Display) {
        self.state.lock().violates(what.to_string());
    }

    /// Returns the subjects that sent requests during the faults. Also records the units that each
    /// of them has been admitted so far.
    pub(crate) fn begin_drain(&self) -> Vec<String> {
        let (plan, state) = (&self.plan, &mut *self.state.lock());
        // If subjects are used for a limited time, some of their windows have ended by now.
        if plan.subject_life < u64::MAX {
            return Vec::new();
        }
        let during = state.tallies.get(&Phase::During).into_iter().flatten();
        let admitted =
            during.map(|(subject, tally)| (subject.clone(), tally.by_store + tally.by_nodes));
        state.admitted_before_drain = admitted.collect();
        state.admitted_before_drain.keys().cloned().collect()
    }

    /// Checks all requirements. Returns the numbers of the run and the violations.
    pub(crate) fn finish(
        &self,
        histories: [(&str, History); 2],
        lost: Lost,
    ) -> (Figures, Vec<String>) {
        let (plan, state) = (&self.plan, &mut *self.state.lock());
        for (when, history) in histories {
            // The status after a charge can include units that the node takes in advance at the
            // same time.
            let leased = unused_units(plan) * plan.nodes as u64;
            let held = held_in_flight(plan);
            let step_by_step = plan.store == StoreKind::Memcached;
            let (fallback, charged_later) = (max_contended(plan), true);
            let allowance = Allowance {
                leased,
                held,
                step_by_step,
                fallback,
                charged_later,
                ..Allowance::default()
            };
            let report = history.check(allowance);
            if !report.is_sound() {
                state.violates(format!("the history {when} is not sound: {report}"));
            }
        }
        let tallies = std::mem::take(&mut state.tallies);
        let of_phases = tallies.iter().flat_map(|(phase, of_phase)| {
            of_phase.iter().map(move |(subject, tally)| (phase, subject, tally))
        });
        for (phase, subject, tally) in of_phases {
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

    /// Checks a subject in a phase without faults. The admitted units must not exceed the quota. If
    /// the store refused a request because of the limit, they must equal the quota, except for
    /// units that quota leases or requests in flight held, or that nodes admitted alone.
    fn check_exact(&mut self, plan: &Plan, phase: Phase, subject: &str, tally: &Tally) {
        let quota = effects::exact_quota(plan, phase, subject);
        let counted = early_by_leases(plan) + tally.by_nodes;
        let (admitted, least) = (tally.by_store, quota.saturating_sub(counted));
        if admitted > quota || (tally.is_used_up && admitted < least) {
            self.violates(format!("{subject} was admitted {admitted} units of {quota}"));
        }
    }

    /// Checks a subject of the phase with faults against its [`Bounds`].
    fn check_faults(&mut self, plan: &Plan, subject: &str, tally: &Tally, lost: Lost) {
        let (least, quota) = plan.quotas_of(Phase::During.number_of(subject));
        let bounds = Bounds::of(plan, quota, tally);
        let figures = &mut self.figures;
        let excess = tally.by_store.saturating_sub(quota) * 100;
        let approached = excess.checked_div(bounds.by_store - quota);
        figures.store_excess = figures.store_excess.max(approached);
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
        // When the store refused the units of one node, other nodes may have held units of quota
        // leases, which they admit later. The number of such units is at most the number that they
        // held, and at most the number that the store refused.
        let held = lost.exceeded.min(early_by_leases(plan));
        let most = before.max(quota + bounds.in_flight + tally.uncertain + lost.local) + held;
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
        if tally.is_used_up && total + missing < least {
            self.violates(format!(
                "{subject} was refused after {total} units of {least}, and {missing} may be lost"
            ));
        }
    }
}
