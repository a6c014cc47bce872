//! The definitions of the limits of recorded entries, which the replay needs.

use std::collections::{HashMap, HashSet};
use std::mem::discriminant;
use std::sync::Arc;

use parking_lot::{MappedRwLockReadGuard, RwLock, RwLockReadGuard};
use tollgate_core::{Algorithm, Limit};

/// The maximum number of limit definitions that are added between two scans for definitions that no
/// entry uses. There are at most this many more definitions than entries.
pub(super) const MAX_NEW_LIMITS: usize = 1_024;

/// The identity of a limit's counters, and a hash of the numbers that the conversion of a recorded
/// state to a cell uses. Limits with the same counters can have different numbers for different
/// subjects, such as the quotas of plans.
pub(super) type Definition = (u128, u32);

/// The definitions of the limits that entries use, and of some that entries used.
#[derive(Debug, Default)]
pub(super) struct Definitions(RwLock<Kept>);

#[derive(Debug, Default)]
struct Kept {
    limits: HashMap<Definition, Arc<Limit>>,
    /// The number of definitions that entries used when the unused ones were last removed.
    used: usize,
}

impl Definitions {
    /// Returns all definitions, and delays changes until the result is dropped.
    pub(super) fn read(&self) -> MappedRwLockReadGuard<'_, HashMap<Definition, Arc<Limit>>> {
        RwLockReadGuard::map(self.0.read(), |kept| &kept.limits)
    }

    /// Keeps the current definition of `limit`. Subjects with different quotas take turns, so a
    /// definition with another quota does not replace the recorded one. `in_use` returns the
    /// definitions that entries use.
    pub(super) fn record(&self, limit: &Limit, in_use: impl FnOnce() -> HashSet<Definition>) {
        let definition = definition(limit);
        if self.read().get(&definition).is_some_and(|known| is_alike(known, limit)) {
            return;
        }
        let mut kept = self.0.write();
        let Kept { limits, used } = &mut *kept;
        // Each scan of the entries makes room for many definitions.
        if limits.len() >= *used + MAX_NEW_LIMITS {
            let in_use = in_use();
            limits.retain(|definition, _| in_use.contains(definition));
            *used = limits.len();
        }
        limits.insert(definition, Arc::new(limit.clone()));
    }

    #[cfg(test)]
    pub(super) fn clear(&self) {
        self.0.write().limits.clear();
    }
}

/// Returns whether the replay of a state has the same result with both definitions of a limit. If
/// the result depends on the quota, the quota is part of the [`Definition`].
fn is_alike(one: &Limit, other: &Limit) -> bool {
    discriminant(one.algorithm()) == discriminant(other.algorithm())
        && one.window() == other.window()
        && one.skew_tolerance() == other.skew_tolerance()
}

/// Returns the definition of `limit`.
pub(super) fn definition(limit: &Limit) -> Definition {
    let (first, second) = match limit.algorithm() {
        Algorithm::FixedWindow(window) => (window.window().get(), window.nominal_window().get()),
        Algorithm::TokenBucket(bucket) => (bucket.quota(), bucket.burst()),
        _ => (0, 0),
    };
    // Two odd constants, which mix the bits of both numbers.
    let mixed =
        first.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ second.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (limit.state_digest(), (mixed >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use tollgate_core::Millis;
    use tollgate_core::algo::SlidingLog;

    use super::*;

    /// The bug: each charge of a subject with another plan than the charge before replaced the
    /// definition of the limit, under a lock that all charges need.
    #[test]
    fn subjects_with_different_plans_replaced_the_definition_in_turn() {
        let definitions = Definitions::default();
        let limit = |quota, seconds| {
            let log = SlidingLog::new(quota, Millis::from_secs(seconds)).unwrap();
            Limit::new("limit", Algorithm::SlidingLog(log)).unwrap()
        };
        let recorded = |limit: &Limit| {
            definitions.record(limit, HashSet::new);
            Arc::clone(&definitions.read()[&definition(limit)])
        };
        let free = recorded(&limit(5, 60));
        assert!(Arc::ptr_eq(&recorded(&limit(50, 60)), &free));
        assert_eq!(recorded(&limit(5, 90)).window(), Millis::from_secs(90));
    }
}
