//! Windows by the value of a dimension, such as the billing day of a customer.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Policy, QuotasByValue};
use crate::algo::Schedule;
use crate::limit::Limit;

/// The largest number of values for which a limit can have separate windows.
pub const MAX_WINDOW_VALUES: usize = 31;

/// The windows of one limit, selected by the value of a dimension. All these windows use the same
/// counters. If a client's value changes, used units stay used and the open window ends when it
/// would have ended.
#[derive(Clone, Debug)]
pub struct WindowsByValue {
    limit: usize,
    dimension: usize,
    /// The windows of each value, sorted by value. [`Policy::with_windows`] adds to them the limits
    /// that have these windows.
    values: Vec<WindowOfValue>,
}

/// The windows for requests with one value of the dimension.
#[derive(Clone, Debug)]
struct WindowOfValue {
    value: Arc<str>,
    schedule: Schedule,
    /// A copy of the limit with these windows, and a copy of the limit's table of quotas with the
    /// same windows. `None` until [`Policy::with_windows`] creates the copies.
    limit: Option<(Arc<Limit>, Option<QuotasByValue>)>,
}

impl WindowsByValue {
    /// Creates the windows of the limit with the index `limit`, selected by the dimension with the
    /// index `dimension`. Requests with another value, or without a value, have the windows of the
    /// limit itself. Returns `None` if there are more than [`MAX_WINDOW_VALUES`] elements, or if
    /// two are for the same value.
    #[must_use]
    pub fn new(limit: usize, dimension: usize, windows: Vec<(Arc<str>, Schedule)>) -> Option<Self> {
        let of_value = |(value, schedule)| WindowOfValue { value, schedule, limit: None };
        let mut values: Vec<WindowOfValue> = windows.into_iter().map(of_value).collect();
        values.sort_by(|one, other| one.value.cmp(&other.value));
        let is_twice = values.windows(2).any(|two| two[0].value == two[1].value);
        (!is_twice && values.len() <= MAX_WINDOW_VALUES).then_some(Self {
            limit,
            dimension,
            values,
        })
    }

    /// Returns the index of the dimension that selects the windows.
    #[must_use]
    pub const fn dimension(&self) -> usize {
        self.dimension
    }

    /// Adds, for each value, the limit and its quotas with the windows of that value. Returns
    /// `None` if `base` is not a fixed window.
    fn with_limits(mut self, base: &Limit, quotas: Option<&QuotasByValue>) -> Option<Self> {
        for of_value in &mut self.values {
            let scheduled = |limit: &Limit| Some(Arc::new(limit.with_schedule(of_value.schedule)?));
            let quotas = match quotas {
                None => None,
                Some(quotas) => Some(quotas.map_limits(scheduled)?),
            };
            of_value.limit = Some((scheduled(base)?, quotas));
        }
        Some(self)
    }

    /// Returns the limit with the windows of `value`, and its quotas by value with the same
    /// windows. Returns `None` if `value` has no windows of its own.
    fn of(&self, value: &[u8]) -> Option<&(Arc<Limit>, Option<QuotasByValue>)> {
        let index = self.values.binary_search_by(|one| one.value.as_bytes().cmp(value)).ok()?;
        self.values.get(index)?.limit.as_ref()
    }

    /// Returns the limits of all values, including those in the quotas by value.
    pub(super) fn limits(&self) -> impl Iterator<Item = &Arc<Limit>> {
        let limits = self.values.iter().filter_map(|one| one.limit.as_ref());
        limits.flat_map(|(limit, quotas)| {
            let by_value = quotas.iter().flat_map(QuotasByValue::limits);
            core::iter::once(limit).chain(by_value)
        })
    }

    /// Returns the limits of all values, including those in the quotas by value, to change them.
    pub(super) fn limits_mut(&mut self) -> impl Iterator<Item = &mut Arc<Limit>> {
        let limits = self.values.iter_mut().filter_map(|one| one.limit.as_mut());
        limits.flat_map(|(limit, quotas)| {
            let by_value = quotas.iter_mut().flat_map(QuotasByValue::limits_mut);
            core::iter::once(limit).chain(by_value)
        })
    }
}

impl Policy {
    /// Sets windows that depend on the value of a dimension. Returns `None` if an element of
    /// `windows` refers to a missing limit or dimension, or to a limit that is not a fixed window,
    /// or if two elements are for the same limit. Call this method after
    /// [`with_quotas`](Self::with_quotas).
    #[must_use]
    pub fn with_windows(mut self, mut windows: Vec<WindowsByValue>) -> Option<Self> {
        windows.sort_by_key(|one| one.limit);
        let is_twice = windows.windows(2).any(|two| two[0].limit == two[1].limit);
        if is_twice || windows.iter().any(|one| one.dimension >= self.dimensions.len()) {
            return None;
        }
        let with_limits = |one: WindowsByValue| {
            let base = Arc::clone(&self.limits.get(one.limit)?.limit);
            let quotas = self.quotas_at(one.limit);
            one.with_limits(&base, quotas)
        };
        self.windows = windows.into_iter().map(with_limits).collect::<Option<_>>()?;
        Some(self.with_plain_rules())
    }

    /// Returns the windows by value of the limit that has the same name as `limit`. Returns `None`
    /// if that limit has no windows by value.
    #[must_use]
    pub fn windows_of(&self, limit: &Limit) -> Option<&WindowsByValue> {
        let has_name = |one: &&WindowsByValue| self.limits[one.limit].limit.name() == limit.name();
        self.windows.iter().find(has_name)
    }

    /// Returns the limit with the index `limit`, and its table with one quota for each value of a
    /// dimension, if the limit has such a table. Both have the windows that the request selects.
    /// The function `value` returns the request's value for the dimension with an index.
    #[inline]
    pub(super) fn in_windows<V: AsRef<[u8]>, E>(
        &self,
        limit: usize,
        value: impl FnOnce(usize) -> Result<Option<V>, E>,
    ) -> Result<(&Arc<Limit>, Option<&QuotasByValue>), E> {
        if !self.windows.is_empty()
            && let Ok(index) = self.windows.binary_search_by_key(&limit, |one| one.limit)
            && let Some(value) = value(self.windows[index].dimension)?
            && let Some((found, quotas)) = self.windows[index].of(value.as_ref())
        {
            return Ok((found, quotas.as_ref()));
        }
        Ok((&self.limits[limit].limit, self.quotas_at(limit)))
    }
}
