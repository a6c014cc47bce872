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

/// The length of a counting period. A ranking covers the running period and the one before it.
pub const TOP_PERIOD: Millis = Millis::from_secs(300);

/// The parts into which the subjects of a limit are divided, each with its own lock.
pub const TOP_STRIPES: usize = 4;

/// The most subjects that are stored for one limit, for each kind of weight and each period.
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

/// Ranks the recent heaviest subjects of each limit, by the decisions of this node.
///
/// A bounded sketch, [Space-Saving](https://doi.org/10.1007/978-3-540-30570-5_27): it stores at most
/// [`TOP_SUBJECTS`] subjects for each limit, kind and period, whatever the traffic is. It contains
/// every subject that weighs more than a 32nd of its stripe; a stripe is a quarter of all subjects,
/// by a hash that clients cannot guess. The rows of limits are those of
/// [`Decisions`](super::Decisions).
///
/// A decision costs, for each limit that it charged or that refused it, one hash of the subject and
/// one short lock that only subjects of the same limit and stripe share.
#[derive(Debug)]
pub struct Top {
    rows: ArcSwap<Rows<Row>>,
    /// The hash function of subjects. Its key is random and stays on this node.
    hasher: SipHasher13,
    began: Timestamp,
}

/// The heaviest subjects of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopOfLimit {
    /// The limit's name.
    pub limit: Box<str>,
    /// The heaviest first.
    pub subjects: Vec<TopSubject>,
}

/// A heavy subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopSubject {
    /// The subject, as stores receive it.
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
        let rows = ArcSwap::from_pointee(Rows::of(policy, Pools::Apart));
        let random = RandomState::new();
        let hasher = SipHasher13::new_with_keys(random.hash_one(0), random.hash_one(1));
        Self { rows, hasher, began }
    }

    /// Returns the time from which a ranking at `now` counts: the start of the period before the
    /// running one, or the start of the observer.
    #[must_use]
    pub fn since(&self, now: Timestamp) -> Timestamp {
        let before = period(now).saturating_sub(1);
        Timestamp::from_millis(before.saturating_mul(TOP_PERIOD.get())).max(self.began)
    }

    /// Returns the `count` heaviest subjects of each limit at `now`, or of one `limit`. Leaves out
    /// limits without subjects; the order is that in which the limits were added.
    #[must_use]
    pub fn ranked(
        &self,
        by: RankBy,
        limit: Option<&str>,
        count: usize,
        now: Timestamp,
    ) -> Vec<TopOfLimit> {
        let rows = self.rows.load();
        let asked = rows.named().filter(|(name, _)| limit.is_none_or(|limit| *name == limit));
        let ranked = asked.map(|(name, row)| {
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
        // The high bits choose the stripe, all bits the entry in it.
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

/// The number of the period of `now`.
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

/// A part of the subjects of a limit, in two periods.
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

    /// The subjects of `period` and the one before.
    fn merged(&mut self, period: u64) -> Vec<TopSubject> {
        self.turn_to(period);
        let mut told: HashMap<&Subject, (u64, u64)> = HashMap::new();
        for WeightedSubject { subject, units, error } in self.running.entries() {
            // A subject that the other period does not store may have this weight there.
            let missed = self.before.untracked_weight();
            told.insert(subject, (units.saturating_add(missed), error.saturating_add(missed)));
        }
        let (missed, untracked_weight) =
            (self.before.untracked_weight(), self.running.untracked_weight());
        let unknown = untracked_weight.saturating_add(missed);
        for WeightedSubject { subject, units, error } in self.before.entries() {
            // For a subject of both periods, the exact weight replaces the upper bound.
            let (counted, doubt) = told.entry(subject).or_insert((unknown, unknown));
            *counted = (*counted - missed).saturating_add(*units);
            *doubt = (*doubt - missed).saturating_add(*error);
        }
        let subject = |(subject, (units, error)): (&Subject, _)| TopSubject {
            subject: subject.clone(),
            units,
            error,
        };
        told.into_iter().map(subject).collect()
    }

    /// Begins `period` if it is later than the running one. A clock that is set back changes nothing.
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
