//! Limits that replace another limit and take over its usage, in proportion to the capacities.

use alloc::sync::Arc;

use super::{Limit, OnChange};
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
    fn new(limit: Limit, since: Timestamp) -> Self {
        let until = since.after(limit.cell_lifetime()).after(limit.skew_tolerance());
        Self { limit: Arc::new(limit), since, until }
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
            let limit = Self { predecessor: None, candidate: None, ..old.clone() };
            Some(Predecessor::new(limit, now))
        };
        self
    }

    /// Sets the quota and the burst of the predecessor to those of this limit, for requests with a
    /// quota of their own, such as that of a tenant or of an override. These requests are assumed
    /// to have had this quota before the replacement too. If the predecessor cannot count the
    /// quota, this limit takes over no usage.
    pub(super) fn with_predecessor_quota(mut self, quota: u64, burst: Option<u64>) -> Self {
        self.predecessor = self.predecessor.and_then(|old| {
            Some(Predecessor::new(old.limit.with_quota(quota, burst).ok()?, old.since))
        });
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
