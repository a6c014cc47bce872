//! What is held for a time: leases of places in flight, and reservations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use tollgate_core::{
    Admission, Algorithm, Charge, Operation, Policy, Reading, Readings, StoreError,
};

use super::Observer;
use super::rows::{Pools, Rows};
use crate::limiter::Decision;

/// Counts what this node took to hold for a time, and gave back: leases of concurrency limits, and
/// reservations.
///
/// A request that holds something of two limits holds two. One that is opened here may be ended by
/// another node, or by nobody: at its time it ends by itself, which no node hears of. So over all
/// nodes, what is opened less what is settled and released is what is held now and what ended by
/// itself. Its rows are those of [`Decisions`](super::Decisions), and two for the places that the
/// fleet sheds by. Charges that hold nothing cost one comparison each.
#[derive(Debug)]
pub struct Reservations {
    rows: ArcSwap<Rows<Row>>,
}

/// What was held of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationCounts {
    /// The limit's name, or [`OTHER`](super::OTHER).
    pub limit: Box<str>,
    /// Leases and reservations that this node took.
    pub opened: u64,
    /// Reservations whose real cost it put in their place.
    pub settled: u64,
    /// Leases and reservations that it gave back.
    pub released: u64,
    /// Those that it ended when they were held no more: ended before, or by themselves.
    pub late: u64,
    /// Those of whose end the store did not hear: they end by themselves.
    pub unanswered: u64,
}

impl Reservations {
    /// Nothing held yet, of the limits of `policy`.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self { rows: ArcSwap::from_pointee(Rows::of(policy, Pools::Counted)) }
    }

    /// What was held of each limit of which anything was.
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

/// Whether nothing was taken: takes of one call are all or nothing.
fn is_refused(charges: &[Charge<'_>], readings: &Readings) -> bool {
    let mut both = charges.iter().zip(readings.iter());
    both.any(|(charge, reading)| {
        charge.operation.as_charge().is_some() && reading.admission != Admission::Now
    })
}

/// Whether `charge` opens or ends something that is held for a time.
pub(crate) const fn is_of_reservations(charge: &Charge<'_>) -> bool {
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

/// What is counted of one limit.
#[derive(Debug, Default)]
struct Row {
    opened: AtomicU64,
    settled: AtomicU64,
    released: AtomicU64,
    late: AtomicU64,
    unanswered: AtomicU64,
}

impl Row {
    /// What `charge` counts as: of an opening that nobody answered it is not known.
    fn counter(&self, charge: &Charge<'_>, reading: Option<&Reading>) -> Option<&AtomicU64> {
        if !is_of_reservations(charge) {
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
