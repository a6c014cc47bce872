//! A fallback with the same decision for every client.

use tollgate_core::{
    Admission, Charge, Cost, Limit, Millis, Operation, Reading, Readings, Store, StoreError,
    Subject, Timestamp,
};

use super::FallbackStore;

/// The time after which a client that this fallback denied may retry.
pub const DENY_RETRY_AFTER: Millis = Millis::from_secs(1);

/// A fallback that returns the same decision for every charge and peek, without any state.
///
/// # Guarantees
/// A charge that costs more than the limit's capacity is refused.
///
/// # Limitations
/// [`Allow`](Self::Allow) enforces no limit. [`Deny`](Self::Deny) denies access to every client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedAnswer {
    /// Admits everything and reports nothing as used.
    Allow,
    /// Refuses everything, permits a retry after [`DENY_RETRY_AFTER`], and reports all units as
    /// used.
    Deny,
}

impl FixedAnswer {
    fn reading(self, now: Timestamp, limit: &Limit, operation: Operation) -> Reading {
        let admission = match operation {
            Operation::Charge { cost, .. }
            | Operation::Reserve { cost, .. }
            | Operation::Peek { cost } => self.admission(now, limit, cost),
            // A running request keeps its permit.
            Operation::Renew { .. } | Operation::Refund { .. } | Operation::Reset => Admission::Now,
            Operation::Extend { .. } | Operation::Settle { .. } => Admission::Now,
        };
        let (used, full_reset_at) = match self {
            Self::Allow => (0, now),
            Self::Deny => (limit.capacity(), now.after(DENY_RETRY_AFTER)),
        };
        Reading { admission, fits_again: admission, used, full_reset_at, ..Reading::default() }
    }

    fn admission(self, now: Timestamp, limit: &Limit, cost: Cost) -> Admission {
        match self {
            _ if cost.needed() > limit.capacity() => Admission::Never,
            Self::Allow => Admission::Now,
            Self::Deny => Admission::At(now.after(DENY_RETRY_AFTER)),
        }
    }
}

impl Store for FixedAnswer {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Ok(charges.iter().map(|charge| self.reading(now, charge.limit, charge.operation)).collect())
    }
}

impl FallbackStore for FixedAnswer {
    fn observe(&self, _now: Timestamp, _charges: &[Charge<'_>], _readings: &Readings) {}

    /// Returns zero, because this fallback counts nothing. So nothing is charged to the main store
    /// later.
    async fn used(&self, _now: Timestamp, _limit: &Limit, _subject: &Subject) -> u64 {
        0
    }
}
