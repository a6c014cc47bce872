//! Every decision, counted by limit, evaluation and who decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Evaluation, Policy};

use super::Observer;
use super::candidates::{CandidateCounters, CandidateCounts};
use super::rows::{Pools, Rows};
use crate::limiter::Decision;

/// Counts decisions by limit, evaluation and who decided.
///
/// Its table has a row for each limit of the policy, up to
/// [`MAX_COUNTED_LIMITS`](super::MAX_COUNTED_LIMITS). Where the policy is replaced, limits go on
/// with their rows, and those that are gone keep theirs: no counter goes back. A decision costs one
/// addition for itself and one or two for each of its limits; nothing is allocated, and nobody
/// waits.
#[derive(Debug)]
pub struct Decisions {
    rows: ArcSwap<Rows<Row>>,
    whole: Counts,
}

/// Who decided, without the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// The store.
    Store,
    /// This node, which remembers that the store refused.
    Remembered,
    /// What stands in for the store.
    Fallback,
    /// The policy's word for when nothing has an answer.
    Failure,
}

/// Decisions of one kind, by who decided, in the order of [`Decider::ALL`].
pub type ByDecider = [u64; Decider::ALL.len()];

/// What was counted for one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitCounts {
    /// The limit's name, or [`OTHER`](super::OTHER).
    pub limit: Box<str>,
    /// Decisions that asked this limit and admitted the request.
    pub admitted: ByDecider,
    /// Decisions that asked this limit and refused the request, whichever limit refused it.
    pub refused: ByDecider,
    /// Those that this limit refused.
    pub refusals: ByDecider,
    /// What the rules in shadow mode that ask this limit would have admitted.
    pub shadow_admitted: u64,
    /// What the rules in shadow mode that ask this limit would have refused.
    pub shadow_refused: u64,
    /// What its candidate made of the requests that were judged by both.
    pub trials: CandidateCounts,
}

impl Decider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Store, Self::Remembered, Self::Fallback, Self::Failure];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Remembered => "deny_cache",
            Self::Fallback => "fallback",
            Self::Failure => "failure",
        }
    }
}

impl From<DecisionSource> for Decider {
    fn from(source: DecisionSource) -> Self {
        match source {
            DecisionSource::Store => Self::Store,
            DecisionSource::DenyCache => Self::Remembered,
            DecisionSource::Fallback(_) => Self::Fallback,
            DecisionSource::Failure(_) => Self::Failure,
        }
    }
}

impl Decisions {
    /// Nothing counted yet, of the limits of `policy`.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self {
            rows: ArcSwap::from_pointee(Rows::of(policy, Pools::Apart)),
            whole: Counts::default(),
        }
    }

    /// All decisions by who decided: those that admitted, and those that refused.
    #[must_use]
    pub fn totals(&self) -> (ByDecider, ByDecider) {
        (read(&self.whole.admitted), read(&self.whole.refused))
    }

    /// What was counted for each limit, [`OTHER`](super::OTHER) last.
    #[must_use]
    pub fn limits(&self) -> Vec<LimitCounts> {
        self.rows.load().named().map(|(limit, row)| row.counts(limit)).collect()
    }
}

impl Observer for Decisions {
    fn on_decision(&self, decision: &Decision) {
        let decider = Decider::from(decision.source);
        self.whole.of(decision)[decider as usize].fetch_add(1, Ordering::Relaxed);
        let rows = self.rows.load();
        for status in &decision.evaluation.statuses {
            let row = rows.row(&status.limit);
            row.decided.of(decision)[decider as usize].fetch_add(1, Ordering::Relaxed);
            if status.is_refusal() {
                row.refusals[decider as usize].fetch_add(1, Ordering::Relaxed);
            }
        }
        if let Some(shadow) = &decision.shadow {
            count_shadow(&rows, shadow);
        }
        for trial in &decision.trials {
            rows.row(trial.limit()).trials.add(trial);
        }
    }

    fn on_policy_replaced(&self, policy: &Policy) {
        self.rows.store(Arc::new(self.rows.load().extended(policy)));
    }
}

fn count_shadow(rows: &Rows<Row>, shadow: &Evaluation) {
    for status in &shadow.statuses {
        let row = rows.row(&status.limit);
        let count = if status.is_refusal() { &row.shadow_refused } else { &row.shadow_admitted };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counters by who decided.
type Counters = [AtomicU64; Decider::ALL.len()];

#[derive(Debug, Default)]
struct Counts {
    admitted: Counters,
    refused: Counters,
}

impl Counts {
    fn of(&self, decision: &Decision) -> &Counters {
        if decision.is_admitted() { &self.admitted } else { &self.refused }
    }
}

/// What is counted for one limit.
#[derive(Debug, Default)]
struct Row {
    decided: Counts,
    refusals: Counters,
    shadow_admitted: AtomicU64,
    shadow_refused: AtomicU64,
    trials: CandidateCounters,
}

impl Row {
    fn counts(&self, limit: &str) -> LimitCounts {
        LimitCounts {
            limit: limit.into(),
            admitted: read(&self.decided.admitted),
            refused: read(&self.decided.refused),
            refusals: read(&self.refusals),
            shadow_admitted: self.shadow_admitted.load(Ordering::Relaxed),
            shadow_refused: self.shadow_refused.load(Ordering::Relaxed),
            trials: self.trials.counts(),
        }
    }
}

fn read(counters: &Counters) -> ByDecider {
    std::array::from_fn(|decider| counters[decider].load(Ordering::Relaxed))
}
