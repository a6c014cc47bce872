//! A policy with the name of its version.

use std::ops::Deref;
use std::sync::Arc;

use tollgate_core::{Policy, Timestamp};

/// A policy, and which version of it this is.
#[derive(Clone, Debug, Default)]
pub struct Revision {
    policy: Policy,
    version: Arc<str>,
}

impl Revision {
    /// `policy`, which is called `version`: the same name for the same policy on every node.
    #[must_use]
    pub fn new(policy: Policy, version: impl Into<Arc<str>>) -> Self {
        Self { policy, version: version.into() }
    }

    /// What it is called; nothing, if nobody said.
    #[must_use]
    pub const fn version(&self) -> &Arc<str> {
        &self.version
    }

    /// This one from `now` on, where `old` was in force, whose windows may still run.
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
