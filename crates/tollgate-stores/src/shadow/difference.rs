//! Differences between the answers of two stores. Each kind of difference is counted, and some
//! differences are kept as examples.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tollgate_core::{Admission, Charge, Operation, Reading, Readings, Timestamp};

/// The number of recent differences that are kept as examples.
pub const MAX_EXAMPLES: usize = 32;

/// The counts of comparisons and of differences between the two stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Differences {
    /// The number of charges that both stores answered.
    pub compared: u64,
    /// The number of compared charges that only one of the stores admitted.
    pub decision: u64,
    /// The number of compared charges with the same decision and different remaining units.
    pub remaining: u64,
    /// The number of compared charges with the same decision and the same remaining units, but
    /// different reset times.
    pub reset: u64,
    /// The number of calls that the shadow store did not answer.
    pub unanswered: u64,
    /// The number of calls that were not sent to the shadow store because its queue was full.
    pub skipped: u64,
    /// The number of refunds that could not be sent to the shadow store, because the shadow store
    /// did not admit the charge or because the record of the charge was evicted.
    pub uncomparable: u64,
    /// The latest differences as examples. The oldest difference is the first.
    pub examples: Vec<Difference>,
}

/// The kinds of differences. The most serious kind is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// Only one of the two stores admitted the charge.
    Decision,
    /// The stores made the same decision, but report different remaining units.
    Remaining,
    /// The stores made the same decision and report the same remaining units, but different times
    /// of the full reset.
    Reset,
}

impl fmt::Display for DifferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Decision => "decision",
            Self::Remaining => "remaining",
            Self::Reset => "reset",
        })
    }
}

/// One charge that the two stores answered differently. The subject is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The kind of the difference.
    pub kind: DifferenceKind,
    /// The limit's name.
    pub limit: Box<str>,
    /// The time that was passed to both stores.
    pub at: Timestamp,
    /// The answer of the deciding store.
    pub store: ComparedAnswer,
    /// The answer of the shadow store.
    pub shadow: ComparedAnswer,
}

/// The compared fields of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedAnswer {
    /// Whether the charge fits. If it does not fit, the time at which it will fit.
    pub admission: Admission,
    /// The used units of the limit.
    pub used: u64,
    /// The time at which all units of the limit are free again.
    pub full_reset_at: Timestamp,
}

impl From<&Reading> for ComparedAnswer {
    fn from(reading: &Reading) -> Self {
        Self {
            admission: reading.admission,
            used: reading.used,
            full_reset_at: reading.full_reset_at,
        }
    }
}

impl ComparedAnswer {
    fn kind_of_difference(self, other: Self) -> Option<DifferenceKind> {
        let is_admitted = |answer: Self| answer.admission == Admission::Now;
        if is_admitted(self) != is_admitted(other) {
            Some(DifferenceKind::Decision)
        } else if self.used != other.used {
            Some(DifferenceKind::Remaining)
        } else if self.used > 0 && self.full_reset_at != other.full_reset_at {
            Some(DifferenceKind::Reset)
        } else {
            None
        }
    }
}

/// The counters behind [`Differences`], which are updated while the store is in use.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    compared: AtomicU64,
    decision: AtomicU64,
    remaining: AtomicU64,
    reset: AtomicU64,
    unanswered: AtomicU64,
    uncomparable: AtomicU64,
    examples: Mutex<VecDeque<Difference>>,
}

impl Comparison {
    pub(super) fn compare(
        &self,
        at: Timestamp,
        charges: &[Charge<'_>],
        store: &Readings,
        shadow: &Readings,
    ) {
        for ((charge, one), other) in charges.iter().zip(store.iter()).zip(shadow.iter()) {
            self.compared.fetch_add(1, Ordering::Relaxed);
            let (one, other) = (ComparedAnswer::from(one), ComparedAnswer::from(other));
            // Refunds and resets have no decision that could differ.
            let has_decision = charge.operation.as_charge().is_some()
                || matches!(charge.operation, Operation::Peek { .. });
            let admission = if has_decision { one.admission } else { other.admission };
            if let Some(kind) = (ComparedAnswer { admission, ..one }).kind_of_difference(other) {
                self.count(kind);
                let limit = charge.limit.name().into();
                self.keep(Difference { kind, limit, at, store: one, shadow: other });
            }
        }
    }

    pub(super) fn unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn uncomparable(&self) {
        self.uncomparable.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn so_far(&self) -> Differences {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Differences {
            compared: of(&self.compared),
            decision: of(&self.decision),
            remaining: of(&self.remaining),
            reset: of(&self.reset),
            unanswered: of(&self.unanswered),
            skipped: 0,
            uncomparable: of(&self.uncomparable),
            examples: self.examples.lock().iter().cloned().collect(),
        }
    }

    fn count(&self, kind: DifferenceKind) {
        let count = match kind {
            DifferenceKind::Decision => &self.decision,
            DifferenceKind::Remaining => &self.remaining,
            DifferenceKind::Reset => &self.reset,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn keep(&self, difference: Difference) {
        let mut examples = self.examples.lock();
        if examples.len() == MAX_EXAMPLES {
            examples.pop_front();
        }
        examples.push_back(difference);
    }
}
