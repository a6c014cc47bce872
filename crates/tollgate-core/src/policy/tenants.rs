//! Tenants: clients with a plan or with their own quotas, in a table that can change while nodes
//! run.

use alloc::sync::Arc;
use core::fmt;

use super::{Dimension, Policy, QuotasByValue};
use crate::limit::Limit;

/// The table of tenants. A lookup of a tenant's row must not block.
pub trait TenantLookup: fmt::Debug + Send + Sync {
    /// Returns `base` with the quota of `tenant`. The quota is the tenant's own quota for this
    /// limit. If the tenant has none, it is the quota of the tenant's plan in `plans`, or the quota
    /// of `base` if `plans` does not contain the plan. Returns `None` if the tenant has no quota of
    /// its own and no plan, or no quota of its own and `plans` is `None`.
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
    /// The rows of the tenants, or `None` until a limiter adds them. Without rows, no tenant has a
    /// plan or a quota of its own.
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
        (dimension < self.dimensions.len()).then(|| self.with_plain_rules())
    }

    /// Sets the rows of the tenants. The rows have no effect if
    /// [`with_tenants`](Self::with_tenants) was not called.
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
