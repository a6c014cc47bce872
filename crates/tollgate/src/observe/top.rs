//! Who is charged most, and refused most, of late.

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
use crate::limiter::Decision;

/// What is counted together: the answer covers the running period and the one before it.
pub const TOP_PERIOD: Millis = Millis::from_secs(300);

/// Parts of a limit's subjects, each under a lock of its own.
pub const TOP_STRIPES: usize = 4;

/// Subjects that are held at most of one limit, for each kind of weight and each period.
pub const TOP_SUBJECTS: usize = TOP_STRIPES * space_saving::COUNTERS;

/// By what subjects are ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankBy {
    /// Units that they were charged, also where these were given back later.
    #[default]
    Charged,
    /// Units that they asked for and that their limit refused.
    Refused,
}

/// The heaviest subjects of each limit, of late, by what this node decided.
///
/// A bounded sketch, [Space-Saving](https://doi.org/10.1007/978-3-540-30570-5_27): of each limit,
/// kind and period at most [`TOP_SUBJECTS`] subjects are held, whatever traffic brings, and every
/// subject is among them that weighs more than a 32nd of its stripe, a quarter of all subjects by a
/// hash that no client can guess. Limits are told apart as by [`Decisions`](super::Decisions).
///
/// A decision costs, for each limit that it charged or that refused it, one hash of the subject and
/// one short lock that only subjects of the same limit and stripe share.
#[derive(Debug)]
pub struct Top {
    rows: ArcSwap<Rows<Row>>,
    /// Its key is this node's alone.
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

/// A subject that weighs much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopSubject {
    /// Who it is, as stores know it.
    pub subject: Subject,
    /// The most units that it can weigh.
    pub units: u64,
    /// How many of them may be others': it weighs `units - error` at least.
    pub error: u64,
}

impl Top {
    /// Nobody yet, of the limits of `policy`; it begins to count now, at `began`.
    #[must_use]
    pub fn new(policy: &Policy, began: Timestamp) -> Self {
        let rows = ArcSwap::from_pointee(Rows::of(policy, Pools::Apart));
        let random = RandomState::new();
        let hasher = SipHasher13::new_with_keys(random.hash_one(0), random.hash_one(1));
        Self { rows, hasher, began }
    }

    /// From when on is counted what is told at `now`: the beginning of the period before the
    /// running one, or of this node's counting.
    #[must_use]
    pub fn since(&self, now: Timestamp) -> Timestamp {
        let before = period(now).saturating_sub(1);
        Timestamp::from_millis(before.saturating_mul(TOP_PERIOD.get())).max(self.began)
    }

    /// The `count` heaviest subjects of each limit at `now`, limits without any left out, in the
    /// order in which the limits came in force. With a `limit` those of this one alone.
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
        // The high bits choose the stripe, the whole of it the place there.
        let stripe = (hash >> 32) as usize % TOP_STRIPES;
        let stripe = &rows.row(limit).stripes(by)[stripe];
        stripe.lock().add(period(now), hash, &planned.subject, units);
    }
}

impl Observer for Top {
    fn on_decision(&self, _decision: &Decision) {}

    fn on_evaluation(&self, planned: &[PlannedCharge], evaluation: &Evaluation) {
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

/// The number of the period that `now` is in.
const fn period(now: Timestamp) -> u64 {
    now.as_millis() / TOP_PERIOD.get()
}

type Stripes = [Mutex<Stripe>; TOP_STRIPES];

/// What is counted for one limit.
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

/// A part of a limit's subjects, in two periods.
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

    /// What is known in `period` and the one before.
    fn merged(&mut self, period: u64) -> Vec<TopSubject> {
        self.turn_to(period);
        let mut told: HashMap<&Subject, (u64, u64)> = HashMap::new();
        for WeightedSubject { subject, units, error } in self.running.entries() {
            // Who is not held of the other period may weigh so much there.
            let missed = self.before.untracked_weight();
            told.insert(subject, (units.saturating_add(missed), error.saturating_add(missed)));
        }
        let (missed, untracked_weight) =
            (self.before.untracked_weight(), self.running.untracked_weight());
        let unknown = untracked_weight.saturating_add(missed);
        for WeightedSubject { subject, units, error } in self.before.entries() {
            // Of whom the running period knows, what was taken for the most is known now.
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

    /// Begins `period`, if it is later than the one that runs: a clock that was set back counts on.
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
