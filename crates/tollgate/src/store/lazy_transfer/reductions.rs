//! What lowers how a subject stands, as the store that it left is asked for it.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Algorithm, Charge, Cost, Operation};

/// What of `charges` forgets, and what gives back, as the store is asked for it that decides on
/// their subjects no more: nothing of it is ever used more there.
pub(super) fn reductions<'a>(charges: &[Charge<'a>]) -> (Vec<Charge<'a>>, Vec<Charge<'a>>) {
    let reductions = charges.iter().filter_map(|charge| {
        let has_leases = matches!(charge.limit.algorithm(), Algorithm::Concurrency(_));
        let operation = match charge.operation {
            Operation::Reset | Operation::Refund { .. } => charge.operation,
            // Whatever it cost: what comes on top of what was held is taken elsewhere.
            Operation::Settle { id, position, .. } => {
                Operation::Settle { id, position, cost: Cost::PEEK }
            }
            // A reservation that one store alone still holds is charged where two are joined.
            Operation::Extend { .. } if !has_leases => charge.operation,
            // A lease that is not renewed here ends here, and of two the later end stands.
            Operation::Extend { .. } | Operation::Renew { .. } => return None,
            Operation::Charge { .. } | Operation::Reserve { .. } | Operation::Peek { .. } => {
                return None;
            }
        };
        Some(Charge { operation, ..*charge })
    });
    reductions.partition(|charge| charge.operation == Operation::Reset)
}

/// What was given back at one of two stores and may not have been at the other: counted unless it
/// [ends](Self::ends), also where the caller leaves before.
pub(super) struct UnconfirmedRefunds<'a> {
    counter: &'a AtomicU64,
    charges: u64,
}

impl<'a> UnconfirmedRefunds<'a> {
    pub(super) const fn new(counter: &'a AtomicU64, charges: &[Charge<'_>]) -> Self {
        Self { counter, charges: charges.len() as u64 }
    }

    /// Both have heard of it.
    pub(super) fn ends(mut self) {
        self.charges = 0;
    }
}

impl Drop for UnconfirmedRefunds<'_> {
    fn drop(&mut self) {
        self.counter.fetch_add(self.charges, Ordering::Relaxed);
    }
}
