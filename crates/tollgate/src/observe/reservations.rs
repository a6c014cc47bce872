//! Counts of permits of concurrency limits, and of reservations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tollgate_core::{
    Admission, Algorithm, Charge, Operation, Policy, Reading, Readings, StoreError,
};

use super::Observer;
use super::rows::{Pools, Rows};
use crate::decision::Decision;

/// Counts the permits of concurrency limits and the reservations that this node opened and ended.
///
/// A request that holds units of two limits counts twice. Another node can end a permit or
/// reservation that this node opened. A permit or reservation can also expire, which no node
/// observes. Over all nodes, the number opened minus the numbers settled and released is the number
/// open now plus the number expired. The observer has the same rows as
/// [`Decisions`](super::Decisions), and two more for the limits by which the fleet sheds load. A
/// charge that opens and ends nothing costs one comparison.
#[derive(Debug)]
pub struct Reservations {
    rows: ArcSwap<Rows<Row>>,
}

/// The numbers of permits and reservations of one limit that this node opened and ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationCounts {
    /// The limit's name, or [`OTHER`](super::OTHER).
    pub limit: Box<str>,
    /// Permits and reservations that this node opened.
    pub opened: u64,
    /// Reservations that this node settled.
    pub settled: u64,
    /// Permits and reservations that this node released.
    pub released: u64,
    /// Permits and reservations that this node tried to end after they had expired or had been
    /// ended already.
    pub late: u64,
    /// Permits and reservations that could not be ended because the store did not answer. The store
    /// ends such a permit or reservation when it expires.
    pub unanswered: u64,
}

impl Reservations {
    /// Creates an observer for the limits of `policy`.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self { rows: ArcSwap::from_pointee(Rows::of(policy, Pools::Counted)) }
    }

    /// Returns the counts of each limit for which a count is not zero.
    #[must_use]
    pub fn limits(&self) -> Vec<ReservationCounts> {
        let rows = self.rows.load();
        let counts = rows.named().map(|(limit, row)| row.counts(limit));
        counts.filter(ReservationCounts::is_any).collect()
    }
}

impl ReservationCounts {
    const fn is_any(&self) -> bool {
        let Self { limit: _, opened, settled, released, late, unanswered } = self;
        *opened | *settled | *released | *late | *unanswered != 0
    }
}

impl Observer for Reservations {
    fn on_decision(&self, _decision: &Decision) {}

    fn on_reservation(&self, charges: &[Charge<'_>], answer: &Result<Readings, StoreError>) {
        let rows = self.rows.load();
        let count = |charge: &Charge<'_>, reading| {
            if let Some(counter) = rows.row(charge.limit).counter(charge, reading) {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        };
        match answer {
            Err(_) => charges.iter().for_each(|charge| count(charge, None)),
            Ok(readings) if is_refused(charges, readings) => {}
            Ok(readings) => {
                let both = charges.iter().zip(readings.iter());
                both.for_each(|(charge, reading)| count(charge, Some(reading)));
            }
        }
    }

    fn on_policy_replaced(&self, policy: &Policy) {
        self.rows.store(Arc::new(self.rows.load().extended(policy)));
    }
}

/// Returns whether a charge of the call was refused. If one charge was refused, no charge of the
/// call was made, because a call makes all of its charges or none.
fn is_refused(charges: &[Charge<'_>], readings: &Readings) -> bool {
    let mut both = charges.iter().zip(readings.iter());
    both.any(|(charge, reading)| {
        charge.operation.as_charge().is_some() && reading.admission != Admission::Now
    })
}

/// Returns whether `charge` opens or ends a permit or a reservation.
pub(crate) const fn is_hold(charge: &Charge<'_>) -> bool {
    match charge.operation {
        Operation::Reserve { .. } | Operation::Settle { .. } => true,
        Operation::Charge { .. } | Operation::Refund { .. } => {
            matches!(charge.limit.algorithm(), Algorithm::Concurrency(_))
        }
        Operation::Peek { .. }
        | Operation::Extend { .. }
        | Operation::Renew { .. }
        | Operation::Reset => false,
    }
}

/// The counters of one limit.
#[derive(Debug, Default)]
struct Row {
    opened: AtomicU64,
    settled: AtomicU64,
    released: AtomicU64,
    late: AtomicU64,
    unanswered: AtomicU64,
}

impl Row {
    /// Returns the counter for `charge`. Returns `None` if `charge` neither opens nor ends
    /// anything, or if the store did not answer and it is unknown whether a permit or reservation
    /// was opened.
    fn counter(&self, charge: &Charge<'_>, reading: Option<&Reading>) -> Option<&AtomicU64> {
        if !is_hold(charge) {
            return None;
        }
        let (was_held, ended) = match charge.operation {
            Operation::Charge { cost, .. } | Operation::Reserve { cost, .. } => {
                return (reading.is_some() && cost.get() > 0).then_some(&self.opened);
            }
            Operation::Settle { cost, .. } if cost.get() > 0 => {
                (reading.map(|reading| reading.admission == Admission::Now), &self.settled)
            }
            Operation::Settle { .. } => {
                (reading.map(|reading| reading.admission == Admission::Now), &self.released)
            }
            _ => (reading.map(|reading| reading.refunded > 0), &self.released),
        };
        Some(match was_held {
            Some(true) => ended,
            Some(false) => &self.late,
            None => &self.unanswered,
        })
    }

    fn counts(&self, limit: &str) -> ReservationCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReservationCounts {
            limit: limit.into(),
            opened: read(&self.opened),
            settled: read(&self.settled),
            released: read(&self.released),
            late: read(&self.late),
            unanswered: read(&self.unanswered),
        }
    }
}
