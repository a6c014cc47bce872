//! A store, and a second one that is compared with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::runtime::Handle;
use tollgate::model::{Charge, Policy, Readings, Store, StoreError, Timestamp};
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::{Clock, HashKey};
use tollgate_policy::ShadowSettings;
use tollgate_stores::Shadow;
use tollgate_stores::shadow::Differences;

use crate::deny_cache_ttl::Refunds;
use crate::error::OpenError;
use crate::migration_store::MigrationStore;

/// A store that decides, and a shadow store that receives the same calls: see [`Shadow`].
#[derive(Debug)]
pub struct ShadowBackend {
    store: Shadow<MigrationStore, MigrationStore>,
    /// The percentage in the last policy file.
    written: AtomicU16,
}

impl ShadowBackend {
    /// Opens both stores of `settings` and starts to connect.
    pub(crate) fn open(
        settings: &ShadowSettings,
        key: &HashKey,
        policy: &Policy,
        refunds: Refunds,
    ) -> Result<Self, OpenError> {
        if Handle::try_current().is_err() {
            return Err(OpenError::NoRuntime);
        }
        let open = |side| MigrationStore::open(side, key.clone(), policy, refunds);
        let (store, compared_with) = (open(&settings.store)?, open(&settings.compared_with)?);
        let percentage = RolloutPercentage::new(settings.percent);
        let store = Shadow::start(key, percentage, store, compared_with);
        Ok(Self { store, written: AtomicU16::new(settings.percent.parts()) })
    }

    /// Returns the store that decides.
    #[must_use]
    pub fn store(&self) -> &MigrationStore {
        self.store.store()
    }

    /// Returns the shadow store.
    #[must_use]
    pub fn shadow_store(&self) -> &MigrationStore {
        self.store.shadow()
    }

    /// Returns the percentage of subjects that are compared.
    #[must_use]
    pub fn percentage(&self) -> &RolloutPercentage {
        self.store.percentage()
    }

    /// Returns the number of comparisons, and their differences.
    #[must_use]
    pub fn differences(&self) -> Differences {
        self.store.differences()
    }

    pub(crate) async fn started(&self) {
        self.store().started().await;
        self.shadow_store().started().await;
    }

    pub(crate) fn follow(&self, settings: &ShadowSettings, policy: &Policy, refunds: Refunds) {
        self.store().follow(&settings.store, policy, refunds);
        self.shadow_store().follow(&settings.compared_with, policy, refunds);
        if self.written.swap(settings.percent.parts(), Ordering::Relaxed)
            != settings.percent.parts()
        {
            self.percentage().set(settings.percent);
        }
    }

    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        let clock = self.store().clock(clock);
        // The shadow store compares the deciding store's clock with its own, too.
        self.shadow_store().clock(Arc::clone(&clock));
        clock
    }
}

impl Store for ShadowBackend {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.store.apply(now, charges).await
    }
}
