//! Tenants: clients with a plan and quotas of their own, in a table that changes while nodes run.

use alloc::sync::Arc;
use core::fmt;

use super::{Dimension, Policy, QuotasByValue};
use crate::limit::Limit;

/// Finds the rows of tenants. A lookup must not wait.
pub trait TenantLookup: fmt::Debug + Send + Sync {
    /// Returns `base` with the quota of `tenant`: the tenant's own quota of this limit, otherwise
    /// the one of its plan in `plans`, or `base` itself if `plans` lacks the plan. Returns `None`
    /// if the tenant has neither a quota of its own nor a plan, provided that there are `plans`.
    fn limit(
        &self,
        tenant: &[u8],
        base: &Arc<Limit>,
        plans: Option<&QuotasByValue>,
    ) -> Option<Arc<Limit>>;
}

/// The dimension that contains the name of the tenant, and the rows of the tenants.
#[derive(Clone, Debug)]
pub struct TenantBinding {
    pub(super) dimension: usize,
    /// The rows of the tenants. `None` until a limiter adds them: until then, no tenant has a row.
    rows: Option<Arc<dyn TenantLookup>>,
}

impl TenantBinding {
    #[inline]
    pub(super) fn limit(
        &self,
        tenant: &[u8],
        base: &Arc<Limit>,
        quotas: Option<&QuotasByValue>,
    ) -> Option<Arc<Limit>> {
        let plans = quotas.filter(|quotas| quotas.is_by_tenant());
        self.rows.as_ref()?.limit(tenant, base, plans)
    }
}

impl Policy {
    /// Sets the dimension that contains the name of the tenant. Returns `None` if there is no such
    /// dimension.
    #[must_use]
    pub fn with_tenants(mut self, dimension: usize) -> Option<Self> {
        self.tenants = Some(TenantBinding { dimension, rows: None });
        (dimension < self.dimensions.len()).then_some(self)
    }

    /// Sets the rows of the tenants. Without [`with_tenants`](Self::with_tenants) they have no
    /// effect.
    #[must_use]
    pub fn with_tenant_rows(mut self, rows: Arc<dyn TenantLookup>) -> Self {
        if let Some(tenants) = &mut self.tenants {
            tenants.rows = Some(rows);
        }
        self
    }

    /// Returns the dimension that contains the name of the tenant, if the policy has tenants.
    #[must_use]
    pub fn tenant_dimension(&self) -> Option<&Dimension> {
        self.dimensions.get(self.tenants.as_ref()?.dimension)
    }
}
