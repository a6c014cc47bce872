//! The table of the tenants that are in force on this node.

use std::fmt;
use std::future::{Future, ready};
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tollgate_core::policy::{QuotasByValue, TenantLookup};
use tollgate_core::{Limit, Timestamp};

use super::batch::TenantBatch;
use super::limits::LimitCache;
use super::partition::TenantPartition;
use super::row::Tenant;
use super::store::{TenantStorage, TenantStore, TenantStoreError, TenantsChanged};
use super::{MAX_TENANTS, PARTITIONS, name_hash, partition_of, partition_of_hash};
use crate::overrides::TableVersion;

/// The tenants that are in force on this node.
///
/// A lookup takes no lock. While there are no tenants, a lookup costs one load.
#[derive(Default)]
pub struct Tenants {
    /// The partitions and the cache of limits, created when the first partition is installed.
    inner: OnceLock<Inner>,
    /// A lock that serializes changes. The lock is held while new versions of partitions are made
    /// from the current versions.
    changing: Mutex<()>,
}

struct Inner {
    partitions: Box<[ArcSwapOption<TenantPartition>]>,
    limits: LimitCache,
}

/// The next versions of some partitions, each with the index of its partition.
pub type NextPartitions = Vec<(usize, Arc<TenantPartition>)>;

impl Tenants {
    /// Returns the number of tenants.
    #[must_use]
    pub fn len(&self) -> usize {
        (0..PARTITIONS).filter_map(|index| self.partition(index)).map(|one| one.len()).sum()
    }

    /// Returns whether there are no tenants.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of all rows and their slots in memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        (0..PARTITIONS).filter_map(|index| self.partition(index)).map(|one| one.memory()).sum()
    }

    /// Returns the tenant called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Tenant> {
        self.partition(partition_of(name))?.get(name)
    }

    /// Returns the partition with this index, if it was ever installed.
    #[must_use]
    pub fn partition(&self, index: usize) -> Option<Arc<TenantPartition>> {
        self.inner.get()?.partitions.get(index)?.load_full()
    }

    /// Replaces the partition with this index.
    pub fn install(&self, index: usize, partition: Arc<TenantPartition>) {
        let inner = self.inner.get_or_init(Inner::default);
        if let Some(slot) = inner.partitions.get(index) {
            slot.store(Some(partition));
        }
    }

    /// Returns up to `count` tenants with a name that starts with `prefix`, in the order of their
    /// partitions and names. The list begins after the tenant `after`. The search stops at the end
    /// of the partition in which the number of examined rows reaches `scanned`. If there may be
    /// more tenants, also returns the name to pass as `after` for the next page.
    #[must_use]
    pub fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        (count, scanned): (usize, usize),
    ) -> (Vec<Tenant>, Option<Box<str>>) {
        let first = after.map_or(0, partition_of);
        let (mut found, mut rows) = (Vec::new(), 0);
        for index in first..PARTITIONS {
            let Some(partition) = self.partition(index) else { continue };
            let after = after.filter(|_| index == first);
            let left = count.saturating_sub(found.len());
            found.extend(partition.listed(prefix, after).take(left));
            if found.len() >= count {
                return (found.clone(), found.last().map(|last| last.name.clone()));
            }
            rows += partition.len();
            if rows >= scanned
                && let Some(last) = partition.tenants().last()
            {
                return (found, Some(last.name));
            }
        }
        (found, None)
    }

    /// Returns the next version of every partition that `batch` changes, and installs none of them.
    /// `written_at` is the time of the change in seconds since the Unix epoch.
    ///
    /// # Errors
    /// [`TenantStoreError`] if there would be more than [`MAX_TENANTS`], or a partition is full.
    pub fn next(
        &self,
        batch: &TenantBatch,
        written_at: u64,
    ) -> Result<NextPartitions, TenantStoreError> {
        let (mut all, mut next) = (0, Vec::new());
        for index in 0..PARTITIONS {
            let held = self.partition(index);
            let rows = held.as_ref().map_or(0, |held| held.len());
            if !batch.touches(index, rows) {
                all += rows;
                continue;
            }
            let updated = Self::next_partition(held.as_deref(), index, batch, written_at)?;
            all += updated.len();
            next.push((index, updated));
        }
        if all > MAX_TENANTS && all > self.len() {
            return Err(TenantStoreError::Full);
        }
        Ok(next)
    }

    /// Returns the next version of the partition with the index `index`: the partition `held`, if
    /// it exists already, with the changes of `batch`. `written_at` is the time of the change in
    /// seconds since the Unix epoch.
    ///
    /// # Errors
    /// [`TenantStoreError`] if the partition is full.
    pub fn next_partition(
        held: Option<&TenantPartition>,
        index: usize,
        batch: &TenantBatch,
        written_at: u64,
    ) -> Result<Arc<TenantPartition>, TenantStoreError> {
        let before = held.map(TenantPartition::version).unwrap_or_default();
        let drawn = RandomState::new().hash_one(before.drawn);
        let version = TableVersion { changes: before.changes.saturating_add(1), drawn };
        let changes = batch.changes(index);
        let stamp = (version, written_at);
        let updated = TenantPartition::merged(held, changes, batch.replaces(), stamp);
        updated.map(Arc::new).map_err(TenantStoreError::Partition)
    }

    /// Applies `batch` in this process only.
    pub(super) fn apply(
        &self,
        batch: &TenantBatch,
        written_at: u64,
    ) -> Result<TenantsChanged, TenantStoreError> {
        let _changing = self.changing.lock();
        let before = self.len();
        for (index, partition) in self.next(batch, written_at)? {
            self.install(index, partition);
        }
        Ok(TenantsChanged { before, after: self.len() })
    }
}

impl Default for Inner {
    fn default() -> Self {
        let partitions = (0..PARTITIONS).map(|_| ArcSwapOption::empty()).collect();
        Self { partitions, limits: LimitCache::default() }
    }
}

impl TenantLookup for Tenants {
    fn limit(
        &self,
        tenant: &[u8],
        base: &Arc<Limit>,
        plans: Option<&QuotasByValue>,
    ) -> Option<Arc<Limit>> {
        let inner = self.inner.get()?;
        let hash = name_hash(tenant);
        let partition = inner.partitions.get(partition_of_hash(hash))?.load();
        let partition = partition.as_ref()?;
        let row = partition.find(tenant, hash)?;
        let is_it = |limit: usize| partition.word(limit) == Some(base.name());
        let own = row.quotas().find(|(limit, ..)| is_it(*limit));
        // After a change of the policy, the limit may be unable to count the quota. In this case
        // the quota has no effect.
        if let Some((_, quota, burst)) = own
            && let Some(updated) = inner.limits.get(base, (quota, burst))
        {
            return Some(updated);
        }
        let (plans, plan) = (plans?, partition.word(row.plan?)?);
        Some(Arc::clone(plans.of(plan.as_bytes()).unwrap_or(base)))
    }
}

impl fmt::Debug for Tenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenants").field("count", &self.len()).finish()
    }
}

/// Stores tenants in this process.
impl TenantStore for Arc<Tenants> {
    fn apply(
        &self,
        now: Timestamp,
        batch: TenantBatch,
    ) -> Pin<Box<dyn Future<Output = Result<TenantsChanged, TenantStoreError>> + Send + '_>> {
        Box::pin(ready(Tenants::apply(self, &batch, now.as_secs_ceil())))
    }

    fn storage(&self) -> TenantStorage {
        TenantStorage::InProcess
    }
}
