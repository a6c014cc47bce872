//! Limits that replace another limit and take over its usage, in proportion to the capacities.

use alloc::sync::Arc;

use super::{Limit, LimitError, OnChange};
use crate::time::Timestamp;

/// The limit that another limit replaced, the time of the replacement, and the time after which all
/// counters of the replaced limit have expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Predecessor {
    limit: Arc<Limit>,
    since: Timestamp,
    until: Timestamp,
}

impl Predecessor {
    /// Returns the predecessor with `quota` and `burst`, for requests with a quota of their own,
    /// such as that of a plan. These requests are assumed to have had `quota` and `burst` before
    /// the replacement too.
    pub(super) fn with_quota(&self, quota: u64, burst: Option<u64>) -> Result<Self, LimitError> {
        let limit = Arc::new(self.limit.with_quota(quota, burst)?);
        Ok(Self { limit, ..self.clone() })
    }
}

impl Limit {
    /// Returns this limit as the successor of `old` from `now` on. If this limit has the setting
    /// [`OnChange::Scale`], it takes over the usage of `old`. With any other [`OnChange`], or if
    /// `old` has another name, returns this limit unchanged.
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
            Some(Predecessor { limit: Arc::new(limit), since: now, until })
        };
        self
    }

    /// Returns the limit that this limit replaced. Returns `None` if there is none, or if its usage
    /// is no longer taken over at `now`, because all of its counters have expired.
    #[inline]
    #[must_use]
    pub fn predecessor(&self, now: Timestamp) -> Option<&Self> {
        let predecessor = self.predecessor.as_ref()?;
        (now < predecessor.until).then_some(&*predecessor.limit)
    }

    /// Returns the time at which this limit replaced its [`predecessor`](Self::predecessor). Returns
    /// `None` if this limit never had a predecessor.
    ///
    /// If a definition is restored, it replaces the other definition again, at a later time.
    #[must_use]
    pub fn replaced_at(&self) -> Option<Timestamp> {
        Some(self.predecessor.as_ref()?.since)
    }
}
