//! A policy and its version.

use std::ops::Deref;
use std::sync::Arc;

use tollgate_core::policy::TenantLookup;
use tollgate_core::{Policy, Timestamp};

use crate::tenants::Tenants;

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

    /// Adds the rows of the tenants, if the policy has tenants.
    pub(crate) fn with_tenants(self, tenants: &Arc<Tenants>) -> Self {
        if self.policy.tenant_dimension().is_none() {
            return self;
        }
        let rows = Arc::clone(tenants) as Arc<dyn TenantLookup>;
        Self { policy: self.policy.with_tenant_rows(rows), ..self }
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
