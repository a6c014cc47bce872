//! The same word for everybody.

use tollgate_core::{
    Admission, Charge, Cost, Limit, Millis, Operation, Reading, Readings, Store, StoreError,
    Timestamp,
};

use super::FallbackStore;

/// When a client that was denied without having been looked at may come again.
pub const DENY_RETRY_AFTER: Millis = Millis::from_secs(1);

/// Says the same to every take and look, and remembers nothing.
///
/// # What it keeps
/// A take that costs more than its limit can ever hold is refused.
///
/// # What it weakens
/// [`Allow`](Self::Allow): every limit, without bound. [`Deny`](Self::Deny): every client's access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedAnswer {
    /// Everything passes, and nothing is shown as used.
    Allow,
    /// Nothing passes, for another [`DENY_RETRY_AFTER`]; everything is shown as used.
    Deny,
}

impl FixedAnswer {
    fn reading(self, now: Timestamp, limit: &Limit, operation: Operation) -> Reading {
        let admission = match operation {
            Operation::Charge { cost, .. }
            | Operation::Reserve { cost, .. }
            | Operation::Peek { cost } => self.admission(now, limit, cost),
            // A request that runs is not ended by it.
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
}
