//! The replacement of one policy by another.

use alloc::sync::Arc;

use super::{Policy, QuotasByValue, WindowsByValue};
use crate::limit::Limit;
use crate::time::Timestamp;

impl Policy {
    /// Connects each limit of this policy with the limit of `old` that it replaces from `now` on.
    /// The two limits have the same name and the same quota value.
    pub(super) fn replace_limits(&mut self, old: &Self, now: Timestamp) {
        let by_value = self.quotas.iter_mut().flat_map(QuotasByValue::limits_mut);
        let in_windows = self.windows.iter_mut().flat_map(WindowsByValue::limits_mut);
        let limits = self.limits.iter_mut().map(|binding| &mut binding.limit);
        for limit in limits.chain(by_value).chain(in_windows) {
            let olds = || old.limits_for(limit.quota_value());
            let keeps = olds().find(|old| old.state_digest() == limit.state_digest());
            let former = olds().find(|old| old.name() == limit.name());
            if keeps.is_none() && former.is_none() {
                continue;
            }
            let mut replaced = Limit::clone(limit);
            if let Some(old) = keeps {
                replaced = replaced.replacing(old);
            }
            if let Some(old) = former {
                replaced = replaced.with_predecessor(old, now);
            }
            *limit = Arc::new(replaced);
        }
    }

    /// Returns the limits with the quota for `value`, followed by all limits with their default
    /// quota.
    fn limits_for(&self, value: Option<&str>) -> impl Iterator<Item = &Arc<Limit>> {
        let of_value = move |quotas: &'_ QuotasByValue| {
            quotas.limits().iter().position(|limit| value.is_some() && limit.quota_value() == value)
        };
        let by_value =
            self.quotas.iter().filter_map(move |quotas| quotas.limits().get(of_value(quotas)?));
        by_value.chain(self.limits.iter().map(|binding| &binding.limit))
    }
}
