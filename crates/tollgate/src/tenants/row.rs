//! One row: a tenant, its plan, and its own quotas.

use std::fmt;

use tollgate_core::Cost;

/// The most bytes of a tenant's name.
pub const MAX_TENANT_NAME: usize = 128;

/// The most bytes of the name of a plan.
pub const MAX_PLAN: usize = 64;

/// The most own quotas of a tenant.
pub const MAX_TENANT_QUOTAS: usize = 16;

/// The most bytes of the name of a limit.
const MAX_LIMIT: usize = 64;

/// The largest quota and the largest burst of a tenant.
const MOST: u64 = Cost::up_to(u64::MAX).get();

/// A tenant with its plan and its own quotas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenant {
    /// The name: the value of the subject that the policy names in `tenants`.
    pub name: Box<str>,
    /// The name of the tenant's plan, if the tenant has a plan.
    pub plan: Option<Box<str>>,
    /// The tenant's own quotas, which take precedence over the quotas of the plan. The list has at
    /// most one quota for each limit.
    pub quotas: Vec<TenantQuota>,
}

/// A tenant's own quota of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantQuota {
    /// The name of the limit.
    pub limit: Box<str>,
    /// The tenant's quota: units per window.
    pub quota: u64,
    /// The burst of a token bucket. If the value is `None`, the burst follows from the limit and
    /// the quota: see [`Limit::with_quota`](tollgate_core::Limit::with_quota).
    pub burst: Option<u64>,
}

impl Tenant {
    /// Checks the lengths and the characters of the row, and that the row has a plan or a quota.
    ///
    /// # Errors
    /// [`RowError`] with the first mistake.
    pub fn check(&self) -> Result<(), RowError> {
        check_text(&self.name, MAX_TENANT_NAME).map_err(|()| RowError::Name)?;
        if let Some(plan) = &self.plan {
            check_text(plan, MAX_PLAN).map_err(|()| RowError::Plan)?;
        }
        if self.quotas.len() > MAX_TENANT_QUOTAS {
            return Err(RowError::Quotas);
        }
        if self.plan.is_none() && self.quotas.is_empty() {
            return Err(RowError::Empty);
        }
        for (index, one) in self.quotas.iter().enumerate() {
            check_text(&one.limit, MAX_LIMIT).map_err(|()| RowError::Limit)?;
            if self.quotas[..index].iter().any(|other| other.limit == one.limit) {
                return Err(RowError::Duplicate(one.limit.clone()));
            }
            if one.quota > MOST || one.burst.is_some_and(|burst| burst > MOST) {
                return Err(RowError::Number(one.limit.clone()));
            }
        }
        Ok(())
    }
}

fn check_text(text: &str, most: usize) -> Result<(), ()> {
    let is_clean = !text.chars().any(char::is_control) && text.trim() == text;
    if (1..=most).contains(&text.len()) && is_clean { Ok(()) } else { Err(()) }
}

/// The reason why a row is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowError {
    /// The name of the tenant is invalid.
    Name,
    /// The name of the plan is invalid.
    Plan,
    /// The name of a limit is invalid.
    Limit,
    /// The row has neither a plan nor a quota.
    Empty,
    /// The row has more than [`MAX_TENANT_QUOTAS`] quotas.
    Quotas,
    /// The row has two quotas of this limit.
    Duplicate(Box<str>),
    /// The quota or the burst of this limit is too large.
    Number(Box<str>),
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |f: &mut fmt::Formatter<'_>, what: &str, most: usize| {
            write!(
                f,
                "the name of {what} has 1 to {most} bytes, without control characters and without \
                 spaces at its ends"
            )
        };
        match self {
            Self::Name => name(f, "a tenant", MAX_TENANT_NAME),
            Self::Plan => name(f, "a plan", MAX_PLAN),
            Self::Limit => name(f, "a limit", MAX_LIMIT),
            Self::Empty => f.write_str("a tenant needs a plan or a quota"),
            Self::Quotas => write!(f, "a tenant has at most {MAX_TENANT_QUOTAS} own quotas"),
            Self::Duplicate(limit) => write!(f, "the limit {limit:?} has two quotas"),
            Self::Number(limit) => {
                write!(f, "a number of the limit {limit:?} exceeds {MOST}")
            }
        }
    }
}

impl std::error::Error for RowError {}
