//! Counts of decisions by limit, result and decider.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Evaluation, Policy};

use super::Observer;
use super::candidates::{CandidateCounters, CandidateCounts};
use super::rows::{Pools, Rows};
use crate::decision::Decision;

/// Counts decisions by limit, result and decider.
///
/// The observer has a row for each limit of the policy, up to
/// [`MAX_COUNTED_LIMITS`](super::MAX_COUNTED_LIMITS). When the policy is replaced, all limits keep
/// their rows, even limits that the new policy does not have, so no counter decreases. A decision
/// costs one addition, and one or two more for each of its limits. Counting allocates nothing and
/// takes no lock.
#[derive(Debug)]
pub struct Decisions {
    rows: ArcSwap<Rows<Row>>,
    totals: Counts,
}

/// The component that decided, without the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// The store.
    Store,
    /// The deny cache of this node, which remembers a refusal of the store.
    Remembered,
    /// An overflow counter of the full memory store.
    Overflow,
    /// The fallback, while the store does not answer.
    Fallback,
    /// The policy's `on_failure`, because neither the store nor a fallback answered.
    Failure,
}

/// The number of decisions for each decider, in the order of [`Decider::ALL`]. All of these
/// decisions have one result: for example, all of them admitted a request.
pub type ByDecider = [u64; Decider::ALL.len()];

/// The numbers of decisions that evaluated one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitCounts {
    /// The limit's name, or [`OTHER`](super::OTHER).
    pub limit: Box<str>,
    /// The decisions that evaluated this limit and admitted the request, by decider.
    pub admitted: ByDecider,
    /// The decisions that evaluated this limit and refused the request, by decider. The refusal may
    /// be by another limit.
    pub refused: ByDecider,
    /// The decisions in which this limit itself refused the request, by decider.
    pub refusals: ByDecider,
    /// Requests that rules in shadow mode with this limit would have admitted.
    pub shadow_admitted: u64,
    /// Requests that rules in shadow mode with this limit would have refused.
    pub shadow_refused: u64,
    /// The requests that both the limit and its candidate evaluated, by the decisions of both.
    pub trials: CandidateCounts,
}

impl Decider {
    /// All deciders.
    pub const ALL: [Self; 5] =
        [Self::Store, Self::Remembered, Self::Overflow, Self::Fallback, Self::Failure];

    /// Returns the decider's name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Remembered => "deny_cache",
            Self::Overflow => "overflow",
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
            DecisionSource::Overflow => Self::Overflow,
            DecisionSource::Fallback(_) => Self::Fallback,
            DecisionSource::Failure(_) => Self::Failure,
        }
    }
}

impl Decisions {
    /// Creates an observer for the limits of `policy`.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self {
            rows: ArcSwap::from_pointee(Rows::of(policy, Pools::Separate)),
            totals: Counts::default(),
        }
    }

    /// Returns two lists with the number of decisions by decider: the decisions that admitted the
    /// request, and the decisions that refused the request.
    #[must_use]
    pub fn totals(&self) -> (ByDecider, ByDecider) {
        (read(&self.totals.admitted), read(&self.totals.refused))
    }

    /// Returns the counts of each limit. The counts of [`OTHER`](super::OTHER) are the last.
    #[must_use]
    pub fn limits(&self) -> Vec<LimitCounts> {
        self.rows.load().named().map(|(limit, row)| row.counts(limit)).collect()
    }
}

impl Observer for Decisions {
    fn on_decision(&self, decision: &Decision) {
        let decider = Decider::from(decision.source);
        self.totals.of(decision)[decider as usize].fetch_add(1, Ordering::Relaxed);
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
        for outcome in &decision.candidates {
            rows.row(outcome.limit()).trials.add(outcome);
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

/// One counter for each decider.
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

/// The counters of one limit.
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
