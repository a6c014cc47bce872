//! How long the counters of a policy last.

use alloc::sync::Arc;

use super::{Policy, QuotasByValue, WindowsByValue};
use crate::limit::Limit;
use crate::time::Millis;

impl Policy {
    /// Returns the longest time for which a charge on a limit of this policy affects decisions: the
    /// longest sum of a [cell's lifetime](Limit::cell_lifetime) and the
    /// [skew tolerance](Limit::skew_tolerance), over all limits with their candidates, and over all
    /// quotas and windows by value.
    ///
    /// The result includes only numbers of the policy. The quota of a tenant or of an override can
    /// make the fill time of a token bucket longer, and a caller can send a rate with a longer
    /// window in a descriptor.
    #[must_use]
    pub fn longest_cell_lifetime(&self) -> Millis {
        let limits = self.limits.iter().map(|binding| &binding.limit);
        let by_value = self.quotas.iter().flat_map(QuotasByValue::limits);
        let in_windows = self.windows.iter().flat_map(WindowsByValue::limits);
        let limits = limits.chain(by_value).chain(in_windows);
        let lifetime = |limit: &Arc<Limit>| {
            limit.cell_lifetime().get().saturating_add(limit.skew_tolerance().get())
        };
        let candidates = |limit: &Arc<Limit>| limit.candidate().map(lifetime);
        let longest = limits.map(|limit| lifetime(limit).max(candidates(limit).unwrap_or(0)));
        Millis::new(longest.max().unwrap_or_default())
    }
}
