//! The JSON documents in the requests and responses of `/v1/tenants`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate::tenants::{Tenant, TenantQuota};

use super::given;
use super::units::Units;

/// The row of a tenant to set: a plan, own quotas, or both. It replaces the whole row.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = [{ "required": ["plan"] }, { "required": ["quotas"] }]))]
pub(in crate::http) struct TenantRequest<'a> {
    /// The plan: a value by which the policy selects quotas.
    #[serde(borrow, default, deserialize_with = "given")]
    #[schemars(with = "String", length(min = 1, max = 64))]
    plan: Option<Cow<'a, str>>,
    /// The tenant's own quotas, by the names of at most 16 limits. They replace the plan's quotas.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "BTreeMap<String, TenantQuotaDetails>")]
    quotas: Option<BTreeMap<String, TenantQuotaDetails>>,
}

/// One line of an import in JSON lines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct TenantLine<'a> {
    #[serde(borrow)]
    tenant: Cow<'a, str>,
    #[serde(borrow, default)]
    plan: Option<Cow<'a, str>>,
    #[serde(default)]
    quotas: Option<BTreeMap<String, TenantQuotaDetails>>,
}

/// A tenant's own quota for one limit.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct TenantQuotaDetails {
    /// Units per window.
    quota: Units,
    /// The burst of a token bucket.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Units")]
    burst: Option<Units>,
}

/// The row of a tenant.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct TenantDetails {
    /// The name: the value of the subject that the policy names in `tenants`.
    tenant: Box<str>,
    /// The plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    plan: Option<Box<str>>,
    /// The tenant's own quotas, by the names of limits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, TenantQuotaDetails>")]
    quotas: BTreeMap<Box<str>, TenantQuotaDetails>,
}

/// The result of a change of one tenant.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct TenantResponse {
    /// The previous row.
    pub(in crate::http) before: Option<TenantDetails>,
    /// The current row.
    pub(in crate::http) after: Option<TenantDetails>,
}

/// The result of an import.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct ImportResponse {
    /// The number of rows of the import.
    pub(in crate::http) rows: u64,
    /// The number of tenants before the import.
    pub(in crate::http) before: u64,
    /// The number of tenants after the import.
    pub(in crate::http) after: u64,
}

/// One page of the tenants.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::http) struct TenantsResponse {
    /// The place where the tenants are stored.
    pub(in crate::http) location: TenantLocation,
    /// Whether this node has read all tenants since it started. Until then, tenants have the default
    /// quotas.
    pub(in crate::http) loaded: bool,
    /// The error of the last attempt of this node to read changes. The tenants of the last
    /// successful read are in force.
    pub(in crate::http) failure: Option<String>,
    /// The number of all tenants.
    pub(in crate::http) count: u64,
    /// The tenants of this page. A page can be empty although there are more.
    pub(in crate::http) tenants: Vec<TenantDetails>,
    /// The value of `after` for the next page. Null at the end.
    pub(in crate::http) next: Option<Box<str>>,
}

/// The place where tenants are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum TenantLocation {
    /// This process: the tenants are lost when it ends, and other nodes do not have them.
    Process,
    /// The store, from which every node reads them.
    Store,
}

impl TenantRequest<'_> {
    /// Returns the row for the tenant called `name`.
    pub(in crate::http) fn row(self, name: &str) -> Tenant {
        row(name, self.plan.as_deref(), self.quotas)
    }
}

impl TenantLine<'_> {
    pub(in crate::http) fn row(self) -> Tenant {
        row(&self.tenant, self.plan.as_deref(), self.quotas)
    }
}

fn row(
    name: &str,
    plan: Option<&str>,
    quotas: Option<BTreeMap<String, TenantQuotaDetails>>,
) -> Tenant {
    let quota = |(limit, details): (String, TenantQuotaDetails)| TenantQuota {
        limit: limit.into(),
        quota: details.quota.cost().get(),
        burst: details.burst.map(|burst| burst.cost().get()),
    };
    let quotas = quotas.into_iter().flatten().map(quota).collect();
    Tenant { name: name.into(), plan: plan.map(Into::into), quotas }
}

impl From<Tenant> for TenantDetails {
    fn from(tenant: Tenant) -> Self {
        let Tenant { name, plan, quotas } = tenant;
        let details = |one: TenantQuota| {
            let (quota, burst) = (Units::of(one.quota), one.burst.map(Units::of));
            (one.limit, TenantQuotaDetails { quota, burst })
        };
        Self { tenant: name, plan, quotas: quotas.into_iter().map(details).collect() }
    }
}
