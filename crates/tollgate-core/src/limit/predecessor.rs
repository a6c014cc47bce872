//! Limits that take over the counters of their predecessor in proportion.

use alloc::sync::Arc;

use super::{Limit, LimitError, OnChange};
use crate::time::Timestamp;

/// The limit that was replaced, and the time until which its counters may still be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Predecessor {
    limit: Arc<Limit>,
    until: Timestamp,
}

impl Predecessor {
    /// Returns the predecessor of a limit with this quota, which the subject had before too.
    pub(super) fn with_quota(&self, quota: u64, burst: Option<u64>) -> Result<Self, LimitError> {
        let limit = Arc::new(self.limit.with_quota(quota, burst)?);
        Ok(Self { limit, until: self.until })
    }
}

impl Limit {
    /// Returns this limit as the successor of `old` from `now` on, if both have the same name. With
    /// [`OnChange::Scale`] it takes over the usage of `old`; otherwise it takes over nothing.
    #[must_use]
    pub fn with_predecessor(mut self, old: &Self, now: Timestamp) -> Self {
        if self.on_change != OnChange::Scale || self.name != old.name {
            return self;
        }
        self.predecessor = if self.state_digest == old.state_digest {
            // The policy was reloaded because of a change elsewhere.
            old.predecessor.clone()
        } else {
            let until = now.after(old.window()).after(old.skew_tolerance());
            let limit = Self { predecessor: None, candidate: None, ..old.clone() };
            Some(Predecessor { limit: Arc::new(limit), until })
        };
        self
    }

    /// Returns the limit with the counters that this one takes over at `now`, if there is one.
    #[inline]
    #[must_use]
    pub fn predecessor(&self, now: Timestamp) -> Option<&Self> {
        let predecessor = self.predecessor.as_ref()?;
        (now < predecessor.until).then_some(&*predecessor.limit)
    }
}
