//! Operations that reduce usage, as they are sent to the store that the subjects left.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Algorithm, Charge, Cost, Operation};

/// Returns the resets among `charges`, and the refunds, settlements and extensions among `charges`,
/// in the form in which they are sent to the old store, which no longer decides on the subjects.
/// None of the returned operations increases the usage at the old store.
pub(super) fn reductions<'a>(charges: &[Charge<'a>]) -> (Vec<Charge<'a>>, Vec<Charge<'a>>) {
    let reductions = charges.iter().filter_map(|charge| {
        let has_leases = matches!(charge.limit.algorithm(), Algorithm::Concurrency(_));
        let operation = match charge.operation {
            Operation::Reset | Operation::Refund { .. } => charge.operation,
            // The settled cost is not sent, because the new store charges the units above the
            // reservation.
            Operation::Settle { id, position, .. } => {
                Operation::Settle { id, position, cost: Cost::PEEK }
            }
            // If only one store has the reservation, the reservation is charged when the cells are
            // joined.
            Operation::Extend { .. } if !has_leases => charge.operation,
            // A permit that is not renewed at this store expires at this store, and a join keeps
            // the later expiry.
            Operation::Extend { .. } | Operation::Renew { .. } => return None,
            Operation::Charge { .. } | Operation::Reserve { .. } | Operation::Peek { .. } => {
                return None;
            }
        };
        Some(Charge { operation, ..*charge })
    });
    reductions.partition(|charge| charge.operation == Operation::Reset)
}

/// A guard for refunds that reached one store and possibly not the other store. If the guard is
/// dropped without a call of [`ends`](Self::ends), for example because the caller stops waiting,
/// the refunds are counted as unconfirmed.
pub(super) struct UnconfirmedRefunds<'a> {
    counter: &'a AtomicU64,
    charges: u64,
}

impl<'a> UnconfirmedRefunds<'a> {
    pub(super) const fn new(counter: &'a AtomicU64, charges: &[Charge<'_>]) -> Self {
        Self { counter, charges: charges.len() as u64 }
    }

    /// Marks the refund as complete at both stores.
    pub(super) fn ends(mut self) {
        self.charges = 0;
    }
}

impl Drop for UnconfirmedRefunds<'_> {
    fn drop(&mut self) {
        self.counter.fetch_add(self.charges, Ordering::Relaxed);
    }
}
