//! What lowers how a subject stands, as the store that it left is asked for it.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Algorithm, Ask, Charge, Cost};

/// What of `charges` forgets, and what gives back, as the store is asked for it that decides on
/// their subjects no more: nothing of it is ever used more there.
pub(super) fn lowering<'a>(charges: &[Charge<'a>]) -> (Vec<Charge<'a>>, Vec<Charge<'a>>) {
    let lowering = charges.iter().filter_map(|charge| {
        let has_leases = matches!(charge.limit.algorithm(), Algorithm::Concurrency(_));
        let ask = match charge.ask {
            Ask::Forget | Ask::Refund { .. } => charge.ask,
            // Whatever it cost: what comes on top of what was held is taken elsewhere.
            Ask::Settle { id, mark, .. } => Ask::Settle { id, mark, cost: Cost::PEEK },
            // A reservation that one store alone still holds is charged where two are joined.
            Ask::Extend { .. } if !has_leases => charge.ask,
            // A lease that is not renewed here ends here, and of two the later end stands.
            Ask::Extend { .. } | Ask::Renew { .. } => return None,
            Ask::Take { .. } | Ask::Reserve { .. } | Ask::Look { .. } => return None,
        };
        Some(Charge { ask, ..*charge })
    });
    lowering.partition(|charge| charge.ask == Ask::Forget)
}

/// What was given back at one of two stores and may not have been at the other: counted unless it
/// [ends](Self::ends), also where the caller leaves before.
pub(super) struct Unheard<'a> {
    counter: &'a AtomicU64,
    charges: u64,
}

impl<'a> Unheard<'a> {
    pub(super) const fn new(counter: &'a AtomicU64, charges: &[Charge<'_>]) -> Self {
        Self { counter, charges: charges.len() as u64 }
    }

    /// Both have heard of it.
    pub(super) fn ends(mut self) {
        self.charges = 0;
    }
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        self.counter.fetch_add(self.charges, Ordering::Relaxed);
    }
}
