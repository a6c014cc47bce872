//! Limits that replace another limit and take over its usage, in proportion to the capacities.

use alloc::sync::Arc;

use super::{Limit, LimitError, OnChange};
use crate::time::Timestamp;

/// The replaced limit, and the time after which all its counters have expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Predecessor {
    limit: Arc<Limit>,
    until: Timestamp,
}

impl Predecessor {
    /// Returns the predecessor with the quota and the burst of one subject. The subject had the
    /// same quota before the replacement.
    pub(super) fn with_quota(&self, quota: u64, burst: Option<u64>) -> Result<Self, LimitError> {
        let limit = Arc::new(self.limit.with_quota(quota, burst)?);
        Ok(Self { limit, until: self.until })
    }
}

impl Limit {
    /// Returns this limit as the successor of `old` from `now` on, if both have the same name. With
    /// [`OnChange::Scale`], this limit takes over the usage of `old`. With another setting, this
    /// limit takes over nothing.
    #[must_use]
    pub fn with_predecessor(mut self, old: &Self, now: Timestamp) -> Self {
        if self.on_change != OnChange::Scale || self.name != old.name {
            return self;
        }
        self.predecessor = if self.state_digest == old.state_digest {
            // A reload of the policy left this limit unchanged.
            old.predecessor.clone()
        } else {
            let until = now.after(old.window()).after(old.skew_tolerance());
            let limit = Self { predecessor: None, candidate: None, ..old.clone() };
            Some(Predecessor { limit: Arc::new(limit), until })
        };
        self
    }

    /// Returns the limit that this limit replaced, if this limit still takes over its usage at
    /// `now`.
    #[inline]
    #[must_use]
    pub fn predecessor(&self, now: Timestamp) -> Option<&Self> {
        let predecessor = self.predecessor.as_ref()?;
        (now < predecessor.until).then_some(&*predecessor.limit)
    }
}
