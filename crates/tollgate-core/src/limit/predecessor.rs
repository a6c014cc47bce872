//! A limit in the place of another one whose counters it takes over in proportion.

use alloc::sync::Arc;

use super::{Limit, OnChange};
use crate::time::Timestamp;

/// Whose place a limit took, and until when counters of then may still say something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Predecessor {
    limit: Arc<Limit>,
    until: Timestamp,
}

impl Limit {
    /// This limit from `now` on, where `old` was of its name: with [`OnChange::Scale`] it takes
    /// over what was used there, and with any other nothing.
    #[must_use]
    pub fn with_predecessor(mut self, old: &Self, now: Timestamp) -> Self {
        if self.on_change != OnChange::Scale || self.name != old.name {
            return self;
        }
        self.predecessor = if self.state_digest == old.state_digest {
            // The file was read anew for something else.
            old.predecessor.clone()
        } else {
            let until = now.after(old.window()).after(old.skew_tolerance());
            let limit = Self { predecessor: None, candidate: None, ..old.clone() };
            Some(Predecessor { limit: Arc::new(limit), until })
        };
        self
    }

    /// The limit whose counters this one takes over at `now`, if there is one.
    #[inline]
    #[must_use]
    pub fn predecessor(&self, now: Timestamp) -> Option<&Self> {
        let predecessor = self.predecessor.as_ref()?;
        (now < predecessor.until).then_some(&*predecessor.limit)
    }
}
