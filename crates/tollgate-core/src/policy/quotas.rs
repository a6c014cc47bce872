//! Quotas by the value of a dimension, such as the plan of a client.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;

use super::matching::Matched;
use super::{Dimension, NameError, Policy, SubjectSource};
use crate::attributes::RequestAttributes;
use crate::limit::Limit;

/// The largest number of values for which a limit can have separate quotas.
pub const MAX_QUOTA_VALUES: usize = 1_000;

/// The quotas of one limit, selected by the value of a dimension. All these quotas use the same
/// counters. If a client's value changes, used units stay used and running windows end at the same
/// time.
#[derive(Clone, Debug)]
pub struct QuotasByValue {
    limit: usize,
    /// The index of the dimension that selects the quota, if there is one.
    dimension: Option<usize>,
    /// Whether the plan of a tenant takes precedence over the dimension.
    by_tenant: bool,
    /// The limits, sorted by their [values](Limit::quota_value), which are unique.
    limits: Vec<Arc<Limit>>,
}

impl QuotasByValue {
    /// Creates the quotas of the limit with the index `limit`, selected by the dimension with the
    /// index `dimension`. [`Limit::for_value`] creates the `limits`. Requests with another value,
    /// or without a value, use the limit itself. Returns `None` if there are more than
    /// [`MAX_QUOTA_VALUES`] limits, if two limits are for the same value, or if a limit is for no
    /// value.
    #[must_use]
    pub fn new(limit: usize, dimension: usize, limits: Vec<Arc<Limit>>) -> Option<Self> {
        Self::with(limit, Some(dimension), false, limits)
    }

    /// Creates the quotas of the limit with the index `limit`, selected by the plan of the
    /// request's tenant in the table of tenants. For tenants without a plan, the dimension selects
    /// the quota, if `dimension` is set. Returns `None` under the same conditions as
    /// [`new`](Self::new).
    #[must_use]
    pub fn by_tenant(
        limit: usize,
        dimension: Option<usize>,
        limits: Vec<Arc<Limit>>,
    ) -> Option<Self> {
        Self::with(limit, dimension, true, limits)
    }

    fn with(
        limit: usize,
        dimension: Option<usize>,
        by_tenant: bool,
        mut limits: Vec<Arc<Limit>>,
    ) -> Option<Self> {
        limits.sort_by(|one, other| one.quota_value().cmp(&other.quota_value()));
        let is_twice = limits.windows(2).any(|two| two[0].quota_value() == two[1].quota_value());
        let are_complete = limits.iter().all(|limit| limit.quota_value().is_some());
        let is_valid = !is_twice && are_complete && limits.len() <= MAX_QUOTA_VALUES;
        is_valid.then_some(Self { limit, dimension, by_tenant, limits })
    }

    /// Returns the index of the dimension that selects the quota, if there is one.
    #[must_use]
    pub const fn dimension(&self) -> Option<usize> {
        self.dimension
    }

    /// Returns whether the plan of the request's tenant takes precedence over the dimension.
    #[must_use]
    pub const fn is_by_tenant(&self) -> bool {
        self.by_tenant
    }

    /// Returns one limit for each value, with the quota of that value. The limits are sorted by
    /// value.
    #[must_use]
    pub fn limits(&self) -> &[Arc<Limit>] {
        &self.limits
    }

    /// Returns the quotas with other limits: `make` creates each new limit from the limit that it
    /// replaces. Returns `None` if `make` returns `None`.
    pub(super) fn map_limits(&self, make: impl Fn(&Limit) -> Option<Arc<Limit>>) -> Option<Self> {
        let limits = self.limits.iter().map(|limit| make(limit)).collect::<Option<_>>()?;
        Some(Self { limits, ..*self })
    }

    /// Returns the limits of all values, to change them.
    pub(super) fn limits_mut(&mut self) -> impl Iterator<Item = &mut Arc<Limit>> {
        self.limits.iter_mut()
    }

    /// Returns the limit with the quota of `value`, or `None` if `value` has no quota of its own.
    #[must_use]
    pub fn of(&self, value: &[u8]) -> Option<&Arc<Limit>> {
        let value_of =
            |limit: &Arc<Limit>| limit.quota_value().unwrap_or_default().as_bytes().cmp(value);
        let index = self.limits.binary_search_by(value_of).ok()?;
        self.limits.get(index)
    }
}

impl Policy {
    /// Sets quotas that depend on the value of a dimension. Returns `None` if an element of
    /// `quotas` refers to a missing limit or dimension, if two elements are for the same limit, or
    /// if an element does not use the counters of its limit.
    #[must_use]
    pub fn with_quotas(mut self, mut quotas: Vec<QuotasByValue>) -> Option<Self> {
        quotas.sort_by_key(|one| one.limit);
        let is_twice = quotas.windows(2).any(|two| two[0].limit == two[1].limit);
        let is_complete = |one: &QuotasByValue| {
            let Some(base) = self.limits.get(one.limit).map(|binding| &binding.limit) else {
                return false;
            };
            let shares = |limit: &Arc<Limit>| limit.state_digest() == base.state_digest();
            let is_known = |dimension| dimension < self.dimensions.len();
            one.dimension.is_none_or(is_known) && one.limits.iter().all(shares)
        };
        if is_twice || !quotas.iter().all(is_complete) {
            return None;
        }
        self.quotas = quotas;
        Some(self.with_plain_rules())
    }

    /// Returns the quotas by value of the limit that has the same name as `limit`. Returns `None`
    /// if that limit has no quotas by value.
    #[must_use]
    pub fn quotas_of(&self, limit: &Limit) -> Option<&QuotasByValue> {
        let has_name = |one: &&QuotasByValue| self.limits[one.limit].limit.name() == limit.name();
        self.quotas.iter().find(has_name)
    }

    /// Returns the limit with the index `limit`, with the quota and the windows that the values of
    /// the request select.
    #[inline]
    pub(super) fn limit_for(
        &self,
        limit: usize,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
    ) -> Arc<Limit> {
        let value = |dimension: usize| {
            let source = &self.dimensions[dimension].source;
            source.unnamed(&self.forwarding, attributes, matched)
        };
        let found = self.in_windows(limit, |dimension| Ok::<_, Infallible>(value(dimension)));
        let (base, quotas) = match found {
            Ok(found) => found,
            Err(never) => match never {},
        };
        if let Some(tenants) = &self.tenants
            && let Some(tenant) = value(tenants.dimension)
            && let Some(found) = tenants.limit(&tenant, base, quotas)
        {
            return found;
        }
        let value = quotas.and_then(|quotas| value(quotas.dimension?));
        Arc::clone(value.and_then(|value| quotas?.of(&value)).unwrap_or(base))
    }

    /// Returns the limit with the index `limit`, with the quota and the windows that the values in
    /// `subject` select.
    pub(super) fn limit_by_name(
        &self,
        limit: usize,
        subject: &[(&str, Option<&str>)],
    ) -> Result<Arc<Limit>, NameError> {
        let value = |dimension| {
            let value = self.given_value(dimension, subject)?;
            Ok(value.map(|value| value.into_owned().into_bytes()))
        };
        let (base, quotas) = self.in_windows(limit, value)?;
        if let Some(tenants) = &self.tenants
            && let Some(tenant) = self.given_value(tenants.dimension, subject)?
            && let Some(found) = tenants.limit(tenant.as_bytes(), base, quotas)
        {
            return Ok(found);
        }
        let Some((quotas, dimension)) = quotas.and_then(|it| Some((it, it.dimension?))) else {
            return Ok(Arc::clone(base));
        };
        let value = self.given_value(dimension, subject)?;
        let found = value.and_then(|value| quotas.of(value.as_bytes()));
        Ok(Arc::clone(found.unwrap_or(base)))
    }

    /// Returns the value of the dimension in `subject`. For a [`FirstOf`](SubjectSource::FirstOf),
    /// the value does not include the name of the dimension that provided it.
    fn given_value<'v>(
        &self,
        dimension: usize,
        subject: &[(&str, Option<&'v str>)],
    ) -> Result<Option<Cow<'v, str>>, NameError> {
        let Dimension { name, source } = &self.dimensions[dimension];
        let given = subject.iter().find(|(given, _)| *given == &**name);
        let Some(given) = given.and_then(|(_, value)| *value) else { return Ok(None) };
        let normal = self.dimensions[dimension].normal(given, self.paths.case)?;
        Ok(Some(match source {
            SubjectSource::FirstOf { .. } => {
                let value = normal.split_once(':').map_or("", |(_, value)| value);
                Cow::Owned(value.into())
            }
            _ => normal,
        }))
    }

    pub(super) fn quotas_at(&self, limit: usize) -> Option<&QuotasByValue> {
        let index = self.quotas.binary_search_by_key(&limit, |one| one.limit).ok()?;
        self.quotas.get(index)
    }
}
