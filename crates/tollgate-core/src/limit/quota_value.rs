//! Limits with a quota that depends on a value of the request, such as the plan of a client.

use alloc::format;
use alloc::sync::Arc;

use super::{Algorithm, Limit, LimitError};
use crate::algo::{FixedWindow, Schedule};

/// The prefix of the [`quota_value`](Limit::quota_value) of a limit with a quota that is set for
/// one tenant.
const TENANT_VALUE: &str = "tenant:";

/// The character between the quota and the burst in the [`quota_value`](Limit::quota_value) of a
/// tenant.
const TENANT_VALUE_MARK: char = '/';

impl Limit {
    /// Returns the limit with the quota and burst for requests that have `value`. Like
    /// [`with_quota`](Self::with_quota), the method keeps the counters. The result is enforced for
    /// the same subjects as this limit.
    ///
    /// # Errors
    /// [`LimitError`] for a quota that the algorithm cannot count.
    pub fn for_value(
        &self,
        value: &str,
        quota: u64,
        burst: Option<u64>,
    ) -> Result<Self, LimitError> {
        let mut limit = self.with_quota(quota, burst)?.with_enforced(self.enforced);
        limit.quota_value = Some(Arc::from(value));
        Ok(limit)
    }

    /// Returns the limit with the windows of `schedule` and the same counters. Used units stay
    /// used, and the open window keeps its end. Returns `None` unless the algorithm is a fixed
    /// window.
    #[must_use]
    pub fn with_schedule(&self, schedule: Schedule) -> Option<Self> {
        let Algorithm::FixedWindow(window) = &self.algorithm else { return None };
        let window = FixedWindow::scheduled(window.quota(), schedule).ok()?;
        Some(self.clone().with_algorithm(Algorithm::FixedWindow(window), self.reservation))
    }

    /// Returns the limit with a tenant's own quota and burst. Like
    /// [`with_quota`](Self::with_quota), the method keeps the counters. The result is enforced for
    /// the same subjects as this limit.
    ///
    /// # Errors
    /// [`LimitError`] for a quota that the algorithm cannot count.
    pub fn for_tenant(&self, quota: u64, burst: Option<u64>) -> Result<Self, LimitError> {
        let mut limit = self.with_quota(quota, burst)?.with_enforced(self.enforced);
        let burst = burst.map(|burst| format!("{TENANT_VALUE_MARK}{burst}")).unwrap_or_default();
        limit.quota_value = Some(Arc::from(format!("{TENANT_VALUE}{quota}{burst}")));
        Ok(limit)
    }

    /// Returns the limit that [`for_tenant`](Self::for_tenant) created from this limit. `value` is
    /// the [`quota_value`](Self::quota_value) of that limit. Returns `None` if `value` is not such
    /// a value.
    #[must_use]
    pub fn of_tenant_value(&self, value: &[u8]) -> Option<Self> {
        let numbers = core::str::from_utf8(value).ok()?.strip_prefix(TENANT_VALUE)?;
        let (quota, burst) = match numbers.split_once(TENANT_VALUE_MARK) {
            Some((quota, burst)) => (quota, Some(burst.parse().ok()?)),
            None => (numbers, None),
        };
        self.for_tenant(quota.parse().ok()?, burst).ok()
    }

    /// Returns the value that selected the quota, or `None` if the limit has its default quota.
    #[must_use]
    pub fn quota_value(&self) -> Option<&str> {
        self.quota_value.as_deref()
    }
}
