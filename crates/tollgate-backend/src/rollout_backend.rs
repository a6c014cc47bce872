//! A rollout of limits from one store to another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tollgate::model::{Charge, Policy, Readings, Store, StoreError, Timestamp};
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::{Clock, HashKey};
use tollgate_policy::{MigrationStoreSettings, RolloutSettings};
use tollgate_stores::rollout::{DEFAULT_TRANSFER_ENTRIES, DEFAULT_TRANSFER_TIME, OnMove};
use tollgate_stores::sharded::Routing;
use tollgate_stores::{Atomic, Rollout};

use crate::deny_cache_ttl::Refunds;
use crate::error::OpenError;
use crate::migration_store::MigrationStore;

/// A store that decides a percentage of the subjects in one store and the rest in another. See
/// [`Rollout`] for its guarantees, and [`Atomic`] for calls with subjects in both.
#[derive(Debug)]
pub struct RolloutBackend {
    store: Atomic<Rollout<MigrationStore, MigrationStore>>,
    /// The percentage in the last policy file. A reload with the same value keeps a percentage that
    /// an administrator has set since.
    written: AtomicU16,
}

/// A call may span both stores, and the charge in one is refunded if the other refuses. Refusals
/// are therefore remembered only as briefly as with refunds by receipt.
const REFUNDS: Refunds = Refunds::ByReceipts;

impl RolloutBackend {
    /// Opens both stores of `settings` and starts to connect.
    pub(crate) fn open(
        settings: &RolloutSettings,
        key: &HashKey,
        policy: &Policy,
    ) -> Result<Self, OpenError> {
        let open = |side| MigrationStore::open(side, key.clone(), policy, REFUNDS);
        let (from, to) = (open(&settings.from)?, open(&settings.to)?);
        let on_move = match settings.on_move {
            tollgate_policy::OnMove::Transfer => OnMove::Transfer,
            tollgate_policy::OnMove::Reset => OnMove::Reset,
        };
        let rollout = Rollout::new(key, RolloutPercentage::new(settings.percent), from, to)
            .with_routing(routing(settings))
            .with_transfer_entries(DEFAULT_TRANSFER_ENTRIES, carry_within(settings))
            .with_on_move(on_move);
        let written = AtomicU16::new(settings.percent.parts());
        Ok(Self { store: Atomic::new(rollout), written })
    }

    /// Returns the percentage, which can be read and set. Clones share one percentage.
    #[must_use]
    pub fn percentage(&self) -> &RolloutPercentage {
        self.rollout().percentage()
    }

    /// Returns the store that subjects leave.
    #[must_use]
    pub fn from(&self) -> &MigrationStore {
        self.rollout().old()
    }

    /// Returns the store that subjects move to.
    #[must_use]
    pub fn to(&self) -> &MigrationStore {
        self.rollout().new_store()
    }

    /// Returns the number of cells that moved with their subjects.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.rollout().transferred()
    }

    /// Returns the number of calls for which a store could not be queried for the usage of its
    /// subjects.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.rollout().failed_transfers()
    }

    /// Returns the number of charges of failed calls over both stores that could not be refunded,
    /// plus the refunds of which it is not certain that both stores received them.
    #[must_use]
    pub fn unrefunded(&self) -> u64 {
        self.store.unrefunded() + self.rollout().unconfirmed_refunds()
    }

    pub(crate) async fn started(&self) {
        // Both connect concurrently, so the total wait is at most the wait for one.
        self.from().started().await;
        self.to().started().await;
    }

    /// Applies `policy`, and the percentage of `settings` if it differs from the previous file's. A
    /// percentage that an administrator has set therefore survives other changes of the file.
    pub(crate) fn follow(&self, settings: &RolloutSettings, policy: &Policy) {
        self.from().follow(&settings.from, policy, REFUNDS);
        self.to().follow(&settings.to, policy, REFUNDS);
        if self.written.swap(settings.percent.parts(), Ordering::Relaxed)
            != settings.percent.parts()
        {
            let before = self.percentage().get();
            self.percentage().set(settings.percent);
            let now = self.percentage().get();
            tracing::info!(%before, percent = %now, "the policy file changed the rollout");
        }
    }

    /// The clock of the store that subjects go to. The other store compares it with its own, too.
    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        let clock = self.to().clock(clock);
        self.from().clock(Arc::clone(&clock));
        clock
    }

    fn rollout(&self) -> &Rollout<MigrationStore, MigrationStore> {
        self.store.partitions()
    }
}

impl Store for RolloutBackend {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.store.apply(now, charges).await
    }
}

/// Subjects that share a shard in Redis move together.
fn routing(settings: &RolloutSettings) -> Routing {
    let sides = [&settings.to, &settings.from];
    let route_by = sides.into_iter().find_map(|side| match side {
        MigrationStoreSettings::Redis(redis) => redis.route_by.clone(),
        MigrationStoreSettings::Memory(_) | MigrationStoreSettings::Memcached(_) => None,
    });
    route_by.map_or(Routing::First, Routing::Dimension)
}

/// Returns the longest time for a transfer of a client's usage: the longer deadline of the two
/// stores. If a transfer fails, the client starts again from zero.
fn carry_within(settings: &RolloutSettings) -> Duration {
    let deadline = |side: &MigrationStoreSettings| match side {
        MigrationStoreSettings::Memory(_) => DEFAULT_TRANSFER_TIME,
        MigrationStoreSettings::Redis(redis) => redis.deadline,
        MigrationStoreSettings::Memcached(memcached) => memcached.deadline,
    };
    deadline(&settings.from).max(deadline(&settings.to))
}
