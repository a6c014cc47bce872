//! Starts a request. For each request, a server in front of a service calls the limiter when the
//! request arrives and again when the response is known. This module has the call on arrival.
//!
//! Before any limit is charged, the call answers requests to the status path, refuses ambiguous
//! requests and sheds load. For any other request, the call makes the decision on the limits.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::policy::shedding::ShedMode;
use tollgate_core::policy::{Ambiguity, ChargeOn, PlannedCharge, Priority};
use tollgate_core::reading::DecisionSource;
use tollgate_core::{Evaluation, RequestAttributes, Store, StoreError, Timestamp};

use super::Limiter;
use super::charge_mode::{ChargeMode, Reservation};
use super::charge_record::ChargeRecord;
use super::decide::DecisionRequest;
use crate::clock::Stopwatch;
use crate::decision::Decision;
use crate::overrides::SheddingTarget;
use crate::receipt::{Receipt, new_charge_id};
use crate::revision::Revision;
use crate::shed::{FLEET_RETRY_AFTER, InFlightSlot, ShedCause, ShedDecision, TICK, Worker};

/// The interval at which [`Limiter::watch_load`] measures the delay of its own task.
pub const PROBE_PERIOD: Duration = Duration::from_millis(20);

/// The interval at which [`Limiter::watch_load`] checks whether a new policy sheds load, if the
/// current policy does not.
const IDLE_PERIOD: Duration = Duration::from_millis(TICK.get() * 10);

/// The permits that an admitted request holds while the request runs.
#[derive(Debug, Default)]
#[must_use = "a request is in flight until its permits are dropped"]
pub struct AdmissionPermits {
    /// The request's permit on this node, if the node limits the number of requests in flight.
    pub slot: Option<InFlightSlot>,
    /// The request's permit in the fleet, if the number of requests in flight on all nodes together
    /// is limited. [Renew](Limiter::renew) this permit while the request runs and
    /// [refund](Limiter::refund) it at the end.
    pub fleet: Option<Receipt>,
}

/// The limiter's answer to the arrival of a request.
#[expect(clippy::large_enum_variant, reason = "most requests have it; a box costs an allocation")]
pub(crate) enum Started<H> {
    /// The client asked for the status of its limits.
    Status(Result<Evaluation, StoreError>),
    /// The request can be read in more than one way, and is refused. Nothing was charged.
    Ambiguous(Ambiguity),
    /// Load shedding refused the request. Nothing was charged.
    ShedDecision(ShedDecision),
    /// The limiter decided on the request. The first value holds the permits of the request.
    Decided(H, Decision),
}

/// The answer to an arriving request, or the futures that make it. The type parameters are the
/// guard of the request, the futures that read the statuses, shed load and make the decision, and
/// the function that creates the guard.
#[expect(clippy::large_enum_variant, reason = "most requests have it; a box costs an allocation")]
enum Starting<H, Peek, Admit, Decide, F> {
    Status(Peek),
    Started(Started<H>),
    Decision(Admit, Decide, F),
}

impl<S: Store + 'static> Limiter<S> {
    /// Starts a request: answers the status path, refuses an ambiguous request, sheds load, or
    /// decides. Reads the clock and the policy once. Reserves units on the
    /// [metered](Reservation::Metered) limits.
    ///
    /// `hold` creates a guard for the permits of an admitted request. The guard releases the
    /// permits when the request is refused, or when this future is dropped. Await the future at
    /// once: if the store answers without a wait, this call has made the charges already.
    pub(crate) fn start<H: Send, F>(
        self: &Arc<Self>,
        attributes: &RequestAttributes<'_>,
        hold: F,
    ) -> impl Future<Output = Started<H>> + Send + use<'_, S, H, F>
    where
        F: FnOnce(AdmissionPermits) -> H + Send,
    {
        let (now, policy) = (self.now(), self.policy());
        let is_status = policy.answers().status_path.as_deref() == Some(attributes.path)
            && attributes.method == "GET";
        let starting = if is_status {
            let planned = self.status_plan(now, &policy, attributes);
            Starting::Status(Box::pin(async move { self.peek_planned(now, &planned).await }))
        } else {
            let plan = self.plan_at(now, &policy, attributes);
            if let Some(ambiguity) = plan.ambiguity {
                self.report_ambiguous(now, ambiguity);
                Starting::Started(Started::Ambiguous(ambiguity))
            } else {
                let (priority, queue) = (plan.priority, plan.queue());
                let request = DecisionRequest::new(now, &policy, plan);
                let reservation = Reservation::Metered;
                let mut request = DecisionRequest { reservation, queue, ..request };
                let shedding = policy.shedding();
                let sheds = shedding.worker().is_some() || shedding.fleet().is_some();
                let decision = if sheds { None } else { self.decide_at_once(&mut request) };
                match decision {
                    Some(decision) => {
                        let held = hold(AdmissionPermits::default());
                        Starting::Started(Started::Decided(held, decision))
                    }
                    None => {
                        let admit = self.enter(now, &policy, priority);
                        let decide = self.decide_or_release(request);
                        Starting::Decision(admit, Box::pin(decide), hold)
                    }
                }
            }
        };
        async move {
            match starting {
                Starting::Status(peek) => {
                    Started::Status(peek.await.map(|(evaluation, _)| evaluation))
                }
                Starting::Started(started) => started,
                Starting::Decision(admit, decide, hold) => match admit.await {
                    Err(shed) => Started::ShedDecision(shed),
                    Ok(permits) => {
                        let held = hold(permits);
                        Started::Decided(held, decide.await)
                    }
                },
            }
        }
    }
}

impl<S: Store> Limiter<S> {
    /// Admits or sheds a request of `priority`, according to `policy`. Charges no limit: call
    /// [`decide`](Self::decide) next, with the same policy.
    ///
    /// Checks the load of this node first, and then the number of requests in flight on all nodes,
    /// which takes one store call. If the store does not answer, the fallback decides. Without a
    /// fallback the request is admitted.
    ///
    /// # Errors
    /// [`ShedDecision`] if the load is too high. The request then holds no permit, and nothing was
    /// charged.
    pub fn enter<'s>(
        &'s self,
        now: Timestamp,
        policy: &Arc<Revision>,
        priority: Priority,
    ) -> impl Future<Output = Result<AdmissionPermits, ShedDecision>> + Send + use<'s, S> {
        let mode_override = |shedder| self.overrides.shed_mode(shedder, now);
        let fleet = policy
            .shedding()
            .fleet()
            .map(|fleet| (fleet.mode.max(mode_override(SheddingTarget::Fleet)), fleet));
        let fleet = fleet.filter(|(mode, _)| *mode != ShedMode::Off);
        let fleet = fleet.map(|(mode, fleet)| (mode, policy.fleet_plan(&fleet, priority)));
        // Without a bound on the load of a node in the policy, the request must not wait for the
        // lock that protects the load's state.
        let is_bounded = policy.shedding().worker().is_some();
        let worker = if is_bounded { mode_override(SheddingTarget::Worker) } else { ShedMode::Off };
        async move {
            let slot = match worker {
                ShedMode::Off => None,
                mode_override => self.worker.enter_with_mode(now, priority, mode_override)?,
            };
            let Some((mode, planned)) = fleet else {
                return Ok(AdmissionPermits { slot, fleet: None });
            };
            // This future is boxed to keep the outer future small for policies that do not limit
            // the fleet's requests.
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
        match self.charge_planned(now, &planned, id).await {
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

    /// Counts a request of `priority` for which the fleet had no free slot. Returns an error if the
    /// request is shed. Returns `Ok` if `mode` is the shadow mode or `off`, in which the request is
    /// admitted anyway.
    fn shed_by_fleet(&self, mode: ShedMode, priority: Priority) -> Result<(), ShedDecision> {
        let shed =
            ShedDecision { priority, cause: ShedCause::Fleet, retry_after: FLEET_RETRY_AFTER };
        self.worker.counts().count(&shed, mode);
        match mode {
            ShedMode::Enforce => Err(shed),
            ShedMode::Shadow | ShedMode::Off => Ok(()),
        }
    }

    /// Returns the state of load shedding on this node: its load, and the counts of requests that
    /// were shed.
    #[must_use]
    pub const fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Measures the delay of the tasks of this runtime, and updates the load of the node while no
    /// requests arrive. Spawn this future if the policy sheds by the load of a node. The future
    /// never completes. While the policy does not shed load, nothing is measured.
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
            self.worker.update(now);
        }
    }
}
