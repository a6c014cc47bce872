//! Limits on their way from one store to another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tollgate::core::{Charge, Policy, Readings, Store, StoreError, Timestamp};
use tollgate::store::rollout::{DEFAULT_ARRIVALS, DEFAULT_CARRY, OnMove};
use tollgate::store::sharded::Routing;
use tollgate::store::{Atomic, Dial, Rollout};
use tollgate::{Clock, HashKey};
use tollgate_policy::{RolloutSettings, SideSettings};

use crate::error::OpenError;
use crate::recall::Refunds;
use crate::side::Side;

/// Some percent of all subjects decided by one store, the rest by another: see [`Rollout`] for what
/// that keeps and weakens, and [`Atomic`] for calls whose subjects are at both.
#[derive(Debug)]
pub struct Moving {
    store: Atomic<Rollout<Side, Side>>,
    /// What the file said last: another word of the same turns nothing back.
    written: AtomicU16,
}

/// A call may span both stores, and what one of them holds is given back if the other refuses: so
/// that refusals are remembered only as where anybody may give back.
const REFUNDS: Refunds = Refunds::ByReceipts;

impl Moving {
    /// Opens both stores of `settings`, and begins to connect.
    pub(crate) fn open(
        settings: &RolloutSettings,
        key: &HashKey,
        policy: &Policy,
    ) -> Result<Self, OpenError> {
        let open = |side| Side::open(side, key.clone(), policy, REFUNDS);
        let (from, to) = (open(&settings.from)?, open(&settings.to)?);
        let on_move = match settings.on_move {
            tollgate_policy::OnMove::Carry => OnMove::Carry,
            tollgate_policy::OnMove::StartAfresh => OnMove::StartAfresh,
        };
        let rollout = Rollout::new(key, Dial::new(settings.percent), from, to)
            .with_routing(routing(settings))
            .with_arrivals(DEFAULT_ARRIVALS, carry_within(settings))
            .with_on_move(on_move);
        let written = AtomicU16::new(settings.percent.parts());
        Ok(Self { store: Atomic::new(rollout), written })
    }

    /// The percentage, to read and to turn. Clones are one dial.
    #[must_use]
    pub fn dial(&self) -> &Dial {
        self.rollout().dial()
    }

    /// The store that subjects leave.
    #[must_use]
    pub fn from(&self) -> &Side {
        self.rollout().old()
    }

    /// The store that they go to.
    #[must_use]
    pub fn to(&self) -> &Side {
        self.rollout().new_store()
    }

    /// Cells that moved along with their subjects.
    #[must_use]
    pub fn carried(&self) -> u64 {
        self.rollout().carried()
    }

    /// Calls before which a store could not be asked what its subjects had used there.
    #[must_use]
    pub fn left_behind(&self) -> u64 {
        self.rollout().left_behind()
    }

    /// Charges that were taken for nothing, on the way between both, and could not be given back; and
    /// those that are not known to have been given back at both.
    #[must_use]
    pub fn stranded(&self) -> u64 {
        self.store.stranded() + self.rollout().given_back_at_one()
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
            let before = self.dial().get();
            self.dial().set(settings.percent);
            let now = self.dial().get();
            tracing::info!(%before, percent = %now, "the policy file turned the rollout");
        }
    }

    /// The clock of the store that subjects go to.
    pub(crate) fn clock(&self, clock: impl Clock + 'static) -> Arc<dyn Clock> {
        self.to().clock(clock)
    }

    fn rollout(&self) -> &Rollout<Side, Side> {
        self.store.homes()
    }
}

impl Store for Moving {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.store.apply(now, charges).await
    }
}

/// What shares a shard in Redis moves together.
fn routing(settings: &RolloutSettings) -> Routing {
    let sides = [&settings.to, &settings.from];
    let route_by = sides.into_iter().find_map(|side| match side {
        SideSettings::Redis(redis) => redis.route_by.clone(),
        SideSettings::Memory(_) | SideSettings::Memcached(_) => None,
    });
    route_by.map_or(Routing::First, Routing::Dimension)
}

/// How long bringing a client along may take: what a decision may take at the slower store. Who is
/// not brought along begins anew.
fn carry_within(settings: &RolloutSettings) -> Duration {
    let deadline = |side: &SideSettings| match side {
        SideSettings::Memory(_) => DEFAULT_CARRY,
        SideSettings::Redis(redis) => redis.deadline,
        SideSettings::Memcached(memcached) => memcached.deadline,
    };
    deadline(&settings.from).max(deadline(&settings.to))
}
