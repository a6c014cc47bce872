//! The limits and plans that rows of tenants can name.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tollgate::model::policy::{Dimension, PathCase};
use tollgate::model::{Limit, Policy};
use tollgate::tenants::Tenant;
use tollgate_policy::suggest;

/// The limits and plans of a policy.
pub(super) struct RowRules {
    limits: HashMap<Box<str>, Arc<Limit>>,
    plans: BTreeSet<Box<str>>,
    /// The dimension that contains the name of the tenant, and the policy's setting for paths.
    by: Option<(Dimension, PathCase)>,
}

impl RowRules {
    pub(super) fn of(policy: &Policy) -> Self {
        let limits = || policy.limits().iter().map(|binding| &binding.limit);
        let quotas = limits().filter_map(|limit| policy.quotas_of(limit));
        let values = quotas.filter(|quotas| quotas.is_by_tenant()).flat_map(|one| one.limits());
        Self {
            limits: limits().map(|limit| (limit.name().into(), Arc::clone(limit))).collect(),
            plans: values.filter_map(|limit| limit.quota_value().map(Into::into)).collect(),
            by: policy.tenant_dimension().map(|one| (one.clone(), policy.paths().case)),
        }
    }

    /// Checks that requests can have the name of `tenant`, that the policy has its plan and limits,
    /// and that the limits can count the quotas.
    ///
    /// # Errors
    /// The mistake, and how to correct it.
    pub(super) fn check(&self, tenant: &Tenant) -> Result<(), String> {
        tenant.check().map_err(|error| error.to_string())?;
        if let Some((dimension, case)) = &self.by {
            let name = dimension.value_in_requests(&tenant.name, *case);
            if *name != *tenant.name {
                return Err(format!("no request has the tenant {:?}: use {name:?}", tenant.name));
            }
        }
        if let Some(plan) = &tenant.plan
            && !self.plans.contains(plan)
        {
            return Err(unknown("plan", plan, self.plans.iter().map(|plan| &**plan)));
        }
        for one in &tenant.quotas {
            let Some(limit) = self.limits.get(&one.limit) else {
                return Err(unknown("limit", &one.limit, self.limits.keys().map(|name| &**name)));
            };
            if let Err(error) = limit.for_tenant(one.quota, one.burst) {
                return Err(format!("the limit {:?}: {error}", one.limit));
            }
        }
        Ok(())
    }
}

fn unknown<'n>(kind: &str, name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    if let Some(near) = suggest(name, known.clone()) {
        return format!("the policy has no {kind} {name:?}; did you mean {near:?}?");
    }
    let mut names: Vec<_> = known.map(|name| format!("{name:?}")).collect();
    names.sort();
    match names.is_empty() {
        true => format!("the policy has no {kind} {name:?}: it has no {kind}s for tenants"),
        false => format!("the policy has no {kind} {name:?}; it has {}", names.join(", ")),
    }
}
