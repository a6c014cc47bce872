//! The same word for everybody.

use tollgate_core::{
    Ask, Charge, Cost, Fit, Limit, Millis, Reading, Readings, Store, StoreError, Timestamp,
};

use super::StandIn;

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
pub enum Always {
    /// Everything passes, and nothing is shown as used.
    Allow,
    /// Nothing passes, for another [`DENY_RETRY_AFTER`]; everything is shown as used.
    Deny,
}

impl Always {
    fn reading(self, now: Timestamp, limit: &Limit, ask: Ask) -> Reading {
        let fit = match ask {
            Ask::Take { cost, .. } | Ask::Reserve { cost, .. } | Ask::Look { cost } => {
                self.fit(now, limit, cost)
            }
            // A request that runs is not ended by it.
            Ask::Renew { .. } | Ask::Refund { .. } | Ask::Forget => Fit::Now,
            Ask::Extend { .. } | Ask::Settle { .. } => Fit::Now,
        };
        let (used, whole_at) = match self {
            Self::Allow => (0, now),
            Self::Deny => (limit.capacity(), now.after(DENY_RETRY_AFTER)),
        };
        Reading { fit, again: fit, used, whole_at, ..Reading::default() }
    }

    fn fit(self, now: Timestamp, limit: &Limit, cost: Cost) -> Fit {
        match self {
            _ if cost.needed() > limit.capacity() => Fit::Never,
            Self::Allow => Fit::Now,
            Self::Deny => Fit::At(now.after(DENY_RETRY_AFTER)),
        }
    }
}

impl Store for Always {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        Ok(charges.iter().map(|charge| self.reading(now, charge.limit, charge.ask)).collect())
    }
}

impl StandIn for Always {
    fn saw(&self, _now: Timestamp, _charges: &[Charge<'_>], _readings: &Readings) {}
}
