//! Load shedding: rejects requests before any limit is charged.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::policy::shedding::ShedMode;
use tollgate_core::policy::{ChargeOn, PlannedCharge, Priority};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Store, Timestamp};

use super::Limiter;
use super::charge_mode::ChargeMode;
use super::charge_record::ChargeRecord;
use crate::clock::Stopwatch;
use crate::overrides::SheddingTarget;
use crate::receipt::{Receipt, new_charge_id};
use crate::revision::Revision;
use crate::shed::{FLEET_RETRY_AFTER, InFlightSlot, ShedCause, ShedDecision, TICK, Worker};

/// How often [`Limiter::watch_load`] measures how late its task runs.
pub const PROBE_PERIOD: Duration = Duration::from_millis(20);

/// The interval at which [`Limiter::watch_load`] checks whether a new policy sheds load, while the
/// current policy does not.
const IDLE_PERIOD: Duration = Duration::from_millis(TICK.get() * 10);

/// The permits that an admitted request holds while it runs.
#[derive(Debug, Default)]
#[must_use = "a request is in flight until its permits are dropped"]
pub struct AdmissionPermits {
    /// The request's permit on this node, if the node limits requests in flight.
    pub slot: Option<InFlightSlot>,
    /// The request's permit for all nodes together, if they limit requests in flight.
    /// [Renew](Limiter::renew) it while the request runs and [refund](Limiter::refund) it at the
    /// end.
    pub fleet: Option<Receipt>,
}

impl<S: Store> Limiter<S> {
    /// Admits a request of `priority`, or sheds it, as `policy` says. Charges no limit:
    /// [decide](Self::decide) next, by the same policy.
    ///
    /// Checks the load of this node first, then the requests in flight on all nodes, which takes
    /// one store call. If the store does not answer, the fallback decides; without a fallback the
    /// request is admitted.
    ///
    /// # Errors
    /// [`ShedDecision`] if the load is too high. Nothing is held, and nothing was charged.
    pub fn enter<'s>(
        &'s self,
        now: Timestamp,
        policy: &Arc<Revision>,
        priority: Priority,
    ) -> impl Future<Output = Result<AdmissionPermits, ShedDecision>> + Send + use<'s, S> {
        let unenforced = |shedder| self.overrides.shed_mode(shedder, now);
        let fleet = policy
            .shedding()
            .fleet()
            .map(|fleet| (fleet.mode.max(unenforced(SheddingTarget::Fleet)), fleet));
        let fleet = fleet.filter(|(mode, _)| *mode != ShedMode::Off);
        let fleet = fleet.map(|(mode, fleet)| (mode, policy.fleet_plan(&fleet, priority)));
        // Without a bound on the node, no request waits for the lock of its load.
        let is_bounded = policy.shedding().worker().is_some();
        let worker = if is_bounded { unenforced(SheddingTarget::Worker) } else { ShedMode::Off };
        async move {
            let slot = match worker {
                ShedMode::Off => None,
                unenforced => self.worker.enter_with_mode(now, priority, unenforced)?,
            };
            let Some((mode, planned)) = fleet else {
                return Ok(AdmissionPermits { slot, fleet: None });
            };
            // Boxed: it must not enlarge the future if the requests of all nodes are not limited.
            let fleet = Box::pin(self.enter_fleet(now, mode, planned, priority)).await?;
            Ok(AdmissionPermits { slot, fleet })
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
                let mode = ChargeMode::Charge(ChargeOn::Arrival);
                Ok(ChargeRecord::of(id, mode, planned, &readings).receipt)
            }
            Ok(readings) if !matches!(readings.source(), DecisionSource::Failure(_)) => {
                self.shed_by_fleet(mode, priority).map(|()| None)
            }
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Counts a request of `priority` for which the fleet has no free slot. Admits it in shadow mode.
    fn shed_by_fleet(&self, mode: ShedMode, priority: Priority) -> Result<(), ShedDecision> {
        let shed =
            ShedDecision { priority, cause: ShedCause::Fleet, retry_after: FLEET_RETRY_AFTER };
        self.worker.counts().count(&shed, mode);
        match mode {
            ShedMode::Enforce => Err(shed),
            ShedMode::Shadow | ShedMode::Off => Ok(()),
        }
    }

    /// Returns the load of this node, and counts of the requests that were shed.
    #[must_use]
    pub const fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Measures how late tasks of this runtime run, and updates the load of the node while no
    /// requests arrive. Spawn it if the policy sheds by the load of a node. Never returns; measures
    /// nothing while the policy does not shed.
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
