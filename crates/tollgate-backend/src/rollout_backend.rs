//! Limits on their way from one store to another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tollgate::core::{Charge, Policy, Readings, Store, StoreError, Timestamp};
use tollgate::store::rollout::{DEFAULT_TRANSFER_ENTRIES, DEFAULT_TRANSFER_TIME, OnMove};
use tollgate::store::sharded::Routing;
use tollgate::store::{Atomic, Rollout, RolloutPercentage};
use tollgate::{Clock, HashKey};
use tollgate_policy::{MigrationStoreSettings, RolloutSettings};

use crate::deny_cache_ttl::Refunds;
use crate::error::OpenError;
use crate::migration_store::MigrationStore;

/// Some percent of all subjects decided by one store, the rest by another: see [`Rollout`] for what
/// that keeps and weakens, and [`Atomic`] for calls whose subjects are at both.
#[derive(Debug)]
pub struct RolloutBackend {
    store: Atomic<Rollout<MigrationStore, MigrationStore>>,
    /// What the file said last: another word of the same turns nothing back.
    written: AtomicU16,
}

/// A call may span both stores, and what one of them holds is given back if the other refuses: so
/// that refusals are remembered only as where anybody may give back.
const REFUNDS: Refunds = Refunds::ByReceipts;

impl RolloutBackend {
    /// Opens both stores of `settings`, and begins to connect.
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

    /// The percentage, to read and to turn. Clones are one percentage.
    #[must_use]
    pub fn percentage(&self) -> &RolloutPercentage {
        self.rollout().percentage()
    }

    /// The store that subjects leave.
    #[must_use]
    pub fn from(&self) -> &MigrationStore {
        self.rollout().old()
    }

    /// The store that they go to.
    #[must_use]
    pub fn to(&self) -> &MigrationStore {
        self.rollout().new_store()
    }

    /// Cells that moved with their subjects.
    #[must_use]
    pub fn transferred(&self) -> u64 {
        self.rollout().transferred()
    }

    /// Calls before which a store could not be asked what its subjects had used there.
    #[must_use]
    pub fn failed_transfers(&self) -> u64 {
        self.rollout().failed_transfers()
    }

    /// Charges that were taken for nothing, on the way between both, and could not be given back; and
    /// those that are not known to have been given back at both.
    #[must_use]
    pub fn unrefunded(&self) -> u64 {
        self.store.unrefunded() + self.rollout().unconfirmed_refunds()
    }

    pub(crate) async fn started(&self) {
        // Both connect at the same time: waiting for one is waiting for each.
        self.from().started().await;
        self.to().started().await;
    }

    /// Goes on for `policy` and with the percentage of `settings`, if it is not what the file said
    /// before: so that what an administrator turned stays, whatever else changes in the file.
    pub(crate) fn follow(&self, settings: &RolloutSettings, policy: &Policy) {
        self.from().follow(&settings.from, policy, REFUNDS);
        self.to().follow(&settings.to, policy, REFUNDS);
        if self.written.swap(settings.percent.parts(), Ordering::Relaxed)
            != settings.percent.parts()
        {
            let before = self.percentage().get();
            self.percentage().set(settings.percent);
            let now = self.percentage().get();
            tracing::info!(%before, percent = %now, "the policy file turned the rollout");
        }
    }

    /// The clock of the store that subjects go to.
    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        self.to().clock(clock)
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

/// What shares a shard in Redis moves together.
fn routing(settings: &RolloutSettings) -> Routing {
    let sides = [&settings.to, &settings.from];
    let route_by = sides.into_iter().find_map(|side| match side {
        MigrationStoreSettings::Redis(redis) => redis.route_by.clone(),
        MigrationStoreSettings::Memory(_) | MigrationStoreSettings::Memcached(_) => None,
    });
    route_by.map_or(Routing::First, Routing::Dimension)
}

/// How long bringing a client along may take: what a decision may take at the slower store. Who is
/// not brought along begins anew.
fn carry_within(settings: &RolloutSettings) -> Duration {
    let deadline = |side: &MigrationStoreSettings| match side {
        MigrationStoreSettings::Memory(_) => DEFAULT_TRANSFER_TIME,
        MigrationStoreSettings::Redis(redis) => redis.deadline,
        MigrationStoreSettings::Memcached(memcached) => memcached.deadline,
    };
    deadline(&settings.from).max(deadline(&settings.to))
}
