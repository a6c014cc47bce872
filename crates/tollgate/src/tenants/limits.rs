//! Limits with the quotas of tenants. Each limit is created once and kept in a bounded cache.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tollgate_core::Limit;

/// The most limits in the cache. A limit takes some 600 bytes. A limit that was evicted from the
/// cache is created again when a decision needs it.
pub(super) const CACHED_LIMITS: usize = 4_096;

/// An entry of the cache: a limit of the policy, the quota and the burst of a tenant, and the limit
/// that was created from them.
#[derive(Debug)]
struct Entry {
    base: Arc<Limit>,
    numbers: (u64, Option<u64>),
    /// The limit with the tenant's quota and burst, or `None` if the policy's limit cannot count
    /// this quota.
    cached: Option<Arc<Limit>>,
}

/// A cache of limits with the quotas of tenants. The key is the policy's limit, with the quota and
/// the burst of the tenant. Each slot holds one limit.
#[derive(Debug)]
pub(super) struct LimitCache(Box<[ArcSwapOption<Entry>]>);

impl Default for LimitCache {
    fn default() -> Self {
        Self((0..CACHED_LIMITS).map(|_| ArcSwapOption::empty()).collect())
    }
}

impl LimitCache {
    /// Returns the limit `base` with the quota and the burst in `numbers`, from the cache if
    /// possible. Returns `None` if `base` cannot count this quota.
    pub(super) fn get(
        &self,
        base: &Arc<Limit>,
        numbers @ (quota, burst): (u64, Option<u64>),
    ) -> Option<Arc<Limit>> {
        let mixed = (base.name_digest() as u64 ^ quota.rotate_left(17))
            .wrapping_add(burst.unwrap_or(u64::MAX).rotate_left(41))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &self.0[(mixed >> 52) as usize % CACHED_LIMITS];
        // The entry keeps its base alive, so no other limit can have the address of the base.
        if let Some(entry) = &*slot.load()
            && Arc::ptr_eq(&entry.base, base)
            && entry.numbers == numbers
        {
            return entry.cached.clone();
        }
        let cached = base.for_tenant(quota, burst).ok().map(Arc::new);
        let base = Arc::clone(base);
        slot.store(Some(Arc::new(Entry { base, numbers, cached: cached.clone() })));
        cached
    }
}
