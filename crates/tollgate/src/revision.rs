//! A policy and its version.

use std::ops::Deref;
use std::sync::Arc;

use tollgate_core::{Policy, Timestamp};

/// A policy and its version.
#[derive(Clone, Debug, Default)]
pub struct Revision {
    policy: Policy,
    version: Arc<str>,
}

impl Revision {
    /// Sets the version of `policy`: use the same version for the same policy on every node.
    #[must_use]
    pub fn new(policy: Policy, version: impl Into<Arc<str>>) -> Self {
        Self { policy, version: version.into() }
    }

    /// The version; empty if it has none.
    #[must_use]
    pub const fn version(&self) -> &Arc<str> {
        &self.version
    }

    /// Replaces `old` from `now` on, and continues the windows of limits that did not change.
    pub(crate) fn replacing(self, old: &Self, now: Timestamp) -> Self {
        Self { policy: self.policy.replacing(&old.policy, now), ..self }
    }
}

impl From<Policy> for Revision {
    fn from(policy: Policy) -> Self {
        Self { policy, version: Arc::default() }
    }
}

impl Deref for Revision {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.policy
    }
}
