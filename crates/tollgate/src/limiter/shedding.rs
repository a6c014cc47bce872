//! Requests that are shed before any limit is asked.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::policy::shedding::ShedMode;
use tollgate_core::policy::{ChargeOn, PlannedCharge, Priority};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Store, Timestamp};

use super::Limiter;
use super::proof::Proof;
use super::taking::Taking;
use crate::clock::Stopwatch;
use crate::overrides::SheddingTarget;
use crate::receipt::{Receipt, new_charge_id};
use crate::revision::Revision;
use crate::shed::{FLEET_RETRY_AFTER, InFlightSlot, ShedCause, ShedDecision, TICK, Worker};

/// How often [`Limiter::watch_load`] sees how late it runs.
pub const PROBE_PERIOD: Duration = Duration::from_millis(20);

/// How often it looks where nothing is shed: a policy that sheds may come.
const IDLE_PERIOD: Duration = Duration::from_millis(TICK.get() * 10);

/// What an admitted request holds while it runs.
#[derive(Debug, Default)]
#[must_use = "a request is in flight for as long as this lives"]
pub struct Place {
    /// Its place in this node, if it has one.
    pub slot: Option<InFlightSlot>,
    /// Its place in the fleet, if it has one: to be [renewed](Limiter::renew) while it runs and
    /// [given back](Limiter::refund) at its end.
    pub fleet: Option<Receipt>,
}

impl<S: Store> Limiter<S> {
    /// Takes a request of `priority` on, or sheds it, as `policy` says. No limit is charged: do that
    /// next, by the same policy.
    ///
    /// The node is asked first, then the fleet, which takes one call of the store. A store without
    /// an answer sheds nobody; what stands in for it answers in its place.
    ///
    /// # Errors
    /// [`ShedDecision`]: there is too much to do. Nothing is held, and nothing was charged.
    pub fn enter<'s>(
        &'s self,
        now: Timestamp,
        policy: &Arc<Revision>,
        priority: Priority,
    ) -> impl Future<Output = Result<Place, ShedDecision>> + Send + use<'s, S> {
        let unenforced = |shedder| self.overrides.shed_mode(shedder, now);
        let fleet = policy
            .shedding()
            .fleet()
            .map(|fleet| (fleet.mode.max(unenforced(SheddingTarget::Fleet)), fleet));
        let fleet = fleet.filter(|(mode, _)| *mode != ShedMode::Off);
        let fleet = fleet.map(|(mode, fleet)| (mode, policy.fleet_plan(&fleet, priority)));
        // Where nothing bounds the node, nobody waits for the lock of its load.
        let is_bounded = policy.shedding().worker().is_some();
        let worker = if is_bounded { unenforced(SheddingTarget::Worker) } else { ShedMode::Off };
        async move {
            let slot = match worker {
                ShedMode::Off => None,
                unenforced => self.worker.enter_with_mode(now, priority, unenforced)?,
            };
            let Some((mode, planned)) = fleet else { return Ok(Place { slot, fleet: None }) };
            // Apart: where no fleet is asked, what it takes makes no request larger.
            let fleet = Box::pin(self.enter_fleet(now, mode, planned, priority)).await?;
            Ok(Place { slot, fleet })
        }
    }

    async fn enter_fleet(
        &self,
        now: Timestamp,
        mode: ShedMode,
        planned: Vec<PlannedCharge>,
        priority: Priority,
    ) -> Result<Option<Receipt>, ShedDecision> {
        let id = new_charge_id();
        match self.take(now, &planned, id).await {
            Ok(readings) if readings.all_admitted() => {
                let taking = Taking::Charge(ChargeOn::Arrival);
                Ok(Proof::of(id, taking, planned, &readings).receipt)
            }
            Ok(readings) if !matches!(readings.source(), DecisionSource::Failure(_)) => {
                self.shed_by_fleet(mode, priority).map(|()| None)
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Counts a request of `priority` that the fleet has no place for; lets it pass in shadow mode.
    fn shed_by_fleet(&self, mode: ShedMode, priority: Priority) -> Result<(), ShedDecision> {
        let shed =
            ShedDecision { priority, cause: ShedCause::Fleet, retry_after: FLEET_RETRY_AFTER };
        self.worker.counts().count(&shed, mode);
        match mode {
            ShedMode::Enforce => Err(shed),
            ShedMode::Shadow | ShedMode::Off => Ok(()),
        }
    }

    /// This node's load, and what was shed.
    #[must_use]
    pub const fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Measures how late tasks of this runtime run, and lets the node's load be known where no
    /// requests come: to be spawned beside the service where the policy sheds by a worker's load.
    /// It never ends, and measures nothing where nothing is shed.
    pub async fn watch_load(self: Arc<Self>) {
        loop {
            if !self.worker.is_watched() {
                tokio::time::sleep(IDLE_PERIOD).await;
                continue;
            }
            let asleep = Stopwatch::start();
            tokio::time::sleep(PROBE_PERIOD).await;
            let period = u64::try_from(PROBE_PERIOD.as_micros()).unwrap_or(u64::MAX);
            let now = self.now();
            self.worker.observe_loop_delay(now, asleep.micros().saturating_sub(period));
            self.worker.look(now);
        }
    }
}
