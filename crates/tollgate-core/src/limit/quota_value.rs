//! Limits whose quota depends on a value of the request, such as the plan of a client.

use alloc::sync::Arc;

use super::{Limit, LimitError};

impl Limit {
    /// Returns the limit with the quota of requests with `value`, and the same counters, as
    /// [`with_quota`](Self::with_quota) does. It is enforced for the same subjects as this limit.
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

    /// Returns the value that selected the quota; `None` for the limit's default.
    #[must_use]
    pub fn quota_value(&self) -> Option<&str> {
        self.quota_value.as_deref()
    }
}
