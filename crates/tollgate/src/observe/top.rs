//! The subjects that are charged most and refused most.

mod space_saving;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use siphasher::sip::SipHasher13;
use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Evaluation, Limit, Millis, Policy, Subject, Timestamp};

use self::space_saving::{SpaceSaving, WeightedSubject};
use super::Observer;
use super::rows::{Pools, Rows};
use crate::decision::Decision;

/// The length of a counting period. A ranking covers the running period and the previous period.
pub const TOP_PERIOD: Millis = Millis::from_secs(300);

/// The number of stripes: parts into which the subjects of a limit are divided. Each stripe has its
/// own lock.
pub const TOP_STRIPES: usize = 4;

/// The most subjects that are stored for one limit, for each [`RankBy`] and each period.
pub const TOP_SUBJECTS: usize = TOP_STRIPES * space_saving::COUNTERS;

/// The weight by which subjects are ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankBy {
    /// Units that the subjects were charged, including units that were refunded later.
    #[default]
    Charged,
    /// Units that the limit refused to the subjects.
    Refused,
}

/// Ranks the subjects of each limit by the units that this node's recent decisions charged or
/// refused.
///
/// The ranking is a bounded sketch, [Space-Saving](https://doi.org/10.1007/978-3-540-30570-5_27).
/// At any traffic, the sketch stores at most [`TOP_SUBJECTS`] subjects for each limit, [`RankBy`]
/// and period. A hash that clients cannot guess divides the subjects into four stripes. The sketch
/// contains every subject with more than a 32nd of the weight of its stripe. The observer has the
/// same rows of limits as [`Decisions`](super::Decisions).
///
/// For each limit that a decision charged, or that refused the request, the decision costs one hash
/// of the subject and one short lock. Only subjects of the same limit and stripe share a lock.
#[derive(Debug)]
pub struct Top {
    rows: ArcSwap<Rows<Row>>,
    /// The hash function of subjects. Its key is random and stays on this node.
    hasher: SipHasher13,
    began: Timestamp,
}

/// The subjects of one limit that have the largest weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopOfLimit {
    /// The limit's name.
    pub limit: Box<str>,
    /// The subjects, the subject with the largest weight first.
    pub subjects: Vec<TopSubject>,
}

/// A subject with its weight: the units that the subject was charged or refused, as [`RankBy`]
/// selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopSubject {
    /// The subject, encoded as stores receive it.
    pub subject: Subject,
    /// The upper bound of the subject's weight, in units.
    pub units: u64,
    /// The error of the upper bound: the subject's weight is at least `units - error`.
    pub error: u64,
}

impl Top {
    /// Creates an observer for the limits of `policy` that counts from `began` on.
    #[must_use]
    pub fn new(policy: &Policy, began: Timestamp) -> Self {
        let rows = ArcSwap::from_pointee(Rows::of(policy, Pools::Separate));
        let random = RandomState::new();
        let hasher = SipHasher13::new_with_keys(random.hash_one(0), random.hash_one(1));
        Self { rows, hasher, began }
    }

    /// Returns the time from which a ranking at `now` counts: the start of the previous period, or
    /// the start of the observer if the observer started later.
    #[must_use]
    pub fn since(&self, now: Timestamp) -> Timestamp {
        let before = period(now).saturating_sub(1);
        Timestamp::from_millis(before.saturating_mul(TOP_PERIOD.get())).max(self.began)
    }

    /// Returns the subjects with the largest weights at `now`: at most `count` subjects of each
    /// limit, or of only the limit called `limit`. Limits without subjects are left out. The limits
    /// are in the order in which they came into force.
    #[must_use]
    pub fn ranked(
        &self,
        by: RankBy,
        limit: Option<&str>,
        count: usize,
        now: Timestamp,
    ) -> Vec<TopOfLimit> {
        let rows = self.rows.load();
        let selected = rows.named().filter(|(name, _)| limit.is_none_or(|limit| *name == limit));
        let ranked = selected.map(|(name, row)| {
            let stripes = row.stripes(by).iter();
            let mut subjects: Vec<_> =
                stripes.flat_map(|stripe| stripe.lock().merged(period(now))).collect();
            subjects.sort_unstable_by(|one, other| {
                other.units.cmp(&one.units).then_with(|| one.subject.cmp(&other.subject))
            });
            subjects.truncate(count);
            TopOfLimit { limit: name.into(), subjects }
        });
        ranked.filter(|top| !top.subjects.is_empty()).collect()
    }

    fn add(&self, by: RankBy, limit: &Arc<Limit>, planned: &PlannedCharge, now: Timestamp) {
        let units = planned.cost.get();
        if units == 0 {
            return;
        }
        let hash = self.hasher.hash(planned.subject.as_bytes());
        let rows = self.rows.load();
        // The high bits of the hash choose the stripe. All bits of the hash find the entry in the
        // stripe.
        let stripe = (hash >> 32) as usize % TOP_STRIPES;
        let stripe = &rows.row(limit).stripes(by)[stripe];
        stripe.lock().add(period(now), hash, &planned.subject, units);
    }
}

impl Observer for Top {
    fn on_decision(&self, _decision: &Decision) {}

    fn evaluated(&self, planned: &[PlannedCharge], evaluation: &Evaluation) {
        let is_admitted = evaluation.is_admitted();
        for (planned, status) in planned.iter().zip(&evaluation.statuses) {
            if is_admitted {
                self.add(RankBy::Charged, &status.limit, planned, evaluation.now);
            } else if status.is_refusal() {
                self.add(RankBy::Refused, &status.limit, planned, evaluation.now);
            }
        }
    }

    fn on_policy_replaced(&self, policy: &Policy) {
        self.rows.store(Arc::new(self.rows.load().extended(policy)));
    }
}

/// Returns the number of the period that contains `now`.
const fn period(now: Timestamp) -> u64 {
    now.as_millis() / TOP_PERIOD.get()
}

type Stripes = [Mutex<Stripe>; TOP_STRIPES];

/// The counters of one limit.
#[derive(Debug, Default)]
struct Row {
    charged: Stripes,
    refused: Stripes,
}

impl Row {
    const fn stripes(&self, by: RankBy) -> &Stripes {
        match by {
            RankBy::Charged => &self.charged,
            RankBy::Refused => &self.refused,
        }
    }
}

/// One of the stripes into which the subjects of a limit are divided, with the weights of the
/// subjects in two periods.
#[derive(Debug, Default)]
struct Stripe {
    period: u64,
    running: SpaceSaving,
    before: SpaceSaving,
}

impl Stripe {
    fn add(&mut self, period: u64, hash: u64, subject: &Subject, units: u64) {
        self.turn_to(period);
        self.running.add(hash, subject, units);
    }

    /// Returns the subjects of this stripe in `period` and in the previous period, each with the
    /// sum of its weights in both.
    fn merged(&mut self, period: u64) -> Vec<TopSubject> {
        self.turn_to(period);
        let mut merged: HashMap<&Subject, (u64, u64)> = HashMap::new();
        for WeightedSubject { subject, units, error } in self.running.entries() {
            // If the sketch of the previous period does not contain the subject, the subject's
            // weight in that period is at most `earlier_bound`.
            let earlier_bound = self.before.untracked_weight();
            merged.insert(
                subject,
                (units.saturating_add(earlier_bound), error.saturating_add(earlier_bound)),
            );
        }
        let (earlier_bound, untracked_weight) =
            (self.before.untracked_weight(), self.running.untracked_weight());
        let unknown = untracked_weight.saturating_add(earlier_bound);
        for WeightedSubject { subject, units, error } in self.before.entries() {
            // The sketch of the previous period contains the subject, so the stored weight replaces
            // the bound `earlier_bound`.
            let (counted, error_bound) = merged.entry(subject).or_insert((unknown, unknown));
            *counted = (*counted - earlier_bound).saturating_add(*units);
            *error_bound = (*error_bound - earlier_bound).saturating_add(*error);
        }
        let subject = |(subject, (units, error)): (&Subject, _)| TopSubject {
            subject: subject.clone(),
            units,
            error,
        };
        merged.into_iter().map(subject).collect()
    }

    /// Begins `period` if `period` is later than the running period. If the clock was set back,
    /// nothing changes.
    fn turn_to(&mut self, period: u64) {
        if period <= self.period {
            return;
        }
        std::mem::swap(&mut self.running, &mut self.before);
        self.running.clear();
        if period > self.period + 1 {
            self.before.clear();
        }
        self.period = period;
    }
}

#[cfg(test)]
mod tests;
