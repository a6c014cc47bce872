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
    /// Creates a revision of `policy` with the version `version`. Use the same version for the same
    /// policy on every node.
    #[must_use]
    pub fn new(policy: Policy, version: impl Into<Arc<str>>) -> Self {
        Self { policy, version: version.into() }
    }

    /// Returns the version of the policy. The text is empty if the policy has no version.
    #[must_use]
    pub const fn version(&self) -> &Arc<str> {
        &self.version
    }

    /// Gives the policy access to the table of tenants. A policy without tenants does not change.
    pub(crate) fn with_tenants(self, tenants: &Arc<Tenants>) -> Self {
        if self.policy.tenant_dimension().is_none() {
            return self;
        }
        let rows = Arc::clone(tenants) as Arc<dyn TenantLookup>;
        Self { policy: self.policy.with_tenant_rows(rows), ..self }
    }

    /// Returns this policy as the replacement of `old` from `now` on. Limits that did not change
    /// continue their windows.
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
