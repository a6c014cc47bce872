//! A trial of one policy: a limiter that uses the log's time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate::limiter::{Answer, Decision, Reservation, Settlement};
use tollgate::model::policy::{Meter, PlainPlan, Plan, PlannedCharge, Policy, ResponseSettings};
use tollgate::model::{Algorithm, Cost, Millis, StoreError, Timestamp};
use tollgate::store::ImmediateStore;
use tollgate::{DecisionRequest, HashKey, Limiter, Receipt, Revision};

use super::log::Entry;
use super::request::Request;
use super::tally::{EvaluatedRequest, RequestOutcome, Tally};

/// The most permits that are kept at once. If there would be more, the permits that end first are
/// released early.
const LEASES_MAX: usize = 100_000;

/// A limiter with the log's clock, and the permits of requests in flight.
#[derive(Debug)]
pub(super) struct SimulatedLimiter<S> {
    limiter: Limiter<S>,
    answer: Answer,
    leases: BinaryHeap<Reverse<Lease>>,
    begun: u64,
    /// Whether the log does not have the actual cost of a charge that was settled.
    costs_unknown: bool,
}

/// The decision of a [`SimulatedLimiter`] on one request.
#[derive(Debug)]
pub(super) struct SimulatedDecision {
    pub(super) decision: Decision,
    pub(super) outcome: RequestOutcome,
}

impl<S: ImmediateStore> SimulatedLimiter<S> {
    /// Creates a limiter for `policy` with the empty store `store`.
    pub(super) fn new(policy: Policy, store: S, key: &HashKey) -> Self {
        let limiter = Limiter::new(policy, store).with_key(key.clone());
        let (answer, leases) = (Answer::default(), BinaryHeap::new());
        Self { limiter, answer, leases, begun: 0, costs_unknown: false }
    }

    /// Returns the current policy.
    pub(super) fn policy(&self) -> Arc<Revision> {
        self.limiter.policy()
    }

    /// Decides on the charges of `plan` at the time of `request`, and settles the charges with the
    /// status of the response in the log.
    ///
    /// The permits are kept for the duration of the request in the log. If the log has no duration,
    /// the permits are released immediately, because a log without durations cannot show that too
    /// many requests ran at a time. Charges on completion are made immediately, and metered costs
    /// are settled immediately, because a log has only one time for each request.
    ///
    /// # Errors
    /// [`StoreError`] if a refund fails.
    async fn decide(
        &mut self,
        request: &Request<'_>,
        plan: Plan<'_>,
    ) -> Result<SimulatedDecision, StoreError> {
        let now = Timestamp::from_millis(request.entry().time);
        self.end_leases(now).await?;
        let policy = self.limiter.policy();
        // Requests never wait for a permit, because the limiter uses the log's time, and waiting
        // would take time.
        let charges = DecisionRequest::new(now, &policy, plan);
        let reservation = Reservation::Metered;
        let mut decision = self.limiter.decide(DecisionRequest { reservation, ..charges }).await;
        let settlement = decision.settlement(request.entry().status);
        let mut outcome =
            if decision.is_admitted() { RequestOutcome::Admitted } else { RequestOutcome::Refused };
        if let Some(pending) = decision.pending.take() {
            match pending.settled(settlement) {
                None => outcome = RequestOutcome::Refunded,
                Some(pending) => {
                    self.limiter.complete_at(now, pending).await?;
                    decision.settle(settlement, now);
                }
            }
        }
        if let Some(receipt) = decision.receipt.take() {
            outcome = self.end(receipt, settlement, request, outcome).await?;
        }
        if let Some(reserved) = decision.reserved.take() {
            if reserved.is_free(settlement) {
                self.limiter.refund_at(now, reserved).await?;
                if outcome == RequestOutcome::Admitted {
                    outcome = RequestOutcome::Refunded;
                }
            } else {
                let is_unknown = AtomicBool::new(false);
                let actual_cost = |meter: &Meter| {
                    let cost = actual_cost(request.entry(), meter);
                    is_unknown.fetch_or(cost.is_none(), Ordering::Relaxed);
                    cost
                };
                self.limiter.settle_metered_at(now, reserved, settlement, actual_cost).await?;
                self.costs_unknown |= is_unknown.into_inner();
            }
        }
        Ok(SimulatedDecision { decision, outcome })
    }

    /// Decides on the charges `planned` in one call of the store, without the work for a full
    /// decision. The result equals that of [`decide`](Self::decide). None of the charges may be
    /// metered. The store's answer is in [`answer`](Self::answer). If only `decide` can decide on
    /// these charges, this function charges nothing and returns `None`.
    async fn charge(
        &mut self,
        request: &Request<'_>,
        policy: &Policy,
        planned: &[PlannedCharge],
    ) -> Result<Option<RequestOutcome>, StoreError> {
        let now = Timestamp::from_millis(request.entry().time);
        self.end_leases(now).await?;
        match self.limiter.charge_now(now, planned, &mut self.answer) {
            None => return Ok(None),
            Some(charged) => charged?,
        }
        if !self.answer.evaluation().is_admitted() {
            return Ok(Some(RequestOutcome::Refused));
        }
        let status = request.entry().status;
        let is_free = policy.answers().refund_statuses.contains(&status);
        let is_kept = |planned: &PlannedCharge| {
            let is_permit = matches!(planned.limit.algorithm(), Algorithm::Concurrency(_));
            !is_permit && planned.conditions.is_empty()
        };
        if !is_free && planned.iter().all(is_kept) {
            return Ok(Some(RequestOutcome::Admitted));
        }
        let Some(receipt) = self.answer.receipt(planned) else {
            return Ok(Some(RequestOutcome::Admitted));
        };
        let settlement = Settlement::Status { status, is_free };
        self.end(receipt, settlement, request, RequestOutcome::Admitted).await.map(Some)
    }

    /// Refunds the charges of `receipt` that `settlement` does not keep. Keeps the permits of
    /// `receipt` until the request ends.
    async fn end(
        &mut self,
        receipt: Receipt,
        settlement: Settlement,
        request: &Request<'_>,
        mut outcome: RequestOutcome,
    ) -> Result<RequestOutcome, StoreError> {
        let now = Timestamp::from_millis(request.entry().time);
        let (counted, leases) = receipt.split_permits();
        if counted.is_refunded(settlement) {
            // Other limits may still count the request.
            let is_free = counted.is_free(settlement);
            self.limiter.refund_at(now, counted.refundable(settlement)).await?;
            if is_free && outcome == RequestOutcome::Admitted {
                outcome = RequestOutcome::Refunded;
            }
        }
        self.hold(leases, now, request.entry().duration).await?;
        Ok(outcome)
    }

    async fn hold(
        &mut self,
        leases: Receipt,
        now: Timestamp,
        duration: Option<u32>,
    ) -> Result<(), StoreError> {
        let Some(duration) = duration.filter(|_| !leases.is_empty()) else {
            return self.limiter.refund_at(now, leases).await;
        };
        self.begun += 1;
        let ends = now.as_millis() + u64::from(duration);
        self.leases.push(Reverse(Lease { ends, begun: self.begun, receipt: leases }));
        if self.leases.len() > LEASES_MAX {
            self.end_first(now).await?;
        }
        Ok(())
    }

    async fn end_leases(&mut self, now: Timestamp) -> Result<(), StoreError> {
        while self.leases.peek().is_some_and(|Reverse(lease)| lease.ends <= now.as_millis()) {
            self.end_first(now).await?;
        }
        Ok(())
    }

    async fn end_first(&mut self, now: Timestamp) -> Result<(), StoreError> {
        match self.leases.pop() {
            Some(Reverse(lease)) => self.limiter.refund_at(now, lease.receipt).await,
            None => Ok(()),
        }
    }
}

/// Returns the cost of a request, computed from the size or the duration of its response, if the
/// log has these values. For other metered costs, returns `None`, and the reservation counts as the
/// cost.
fn actual_cost(entry: &Entry, meter: &Meter) -> Option<Cost> {
    let time = || Some(Millis::new(entry.duration?.into()));
    entry.bytes.and_then(|bytes| meter.of_size(bytes)).or_else(|| meter.of_time(time()?))
}

/// The permits of a request in flight.
#[derive(Debug)]
struct Lease {
    ends: u64,
    begun: u64,
    receipt: Receipt,
}

impl PartialEq for Lease {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Lease {}

impl PartialOrd for Lease {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Lease {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.ends, self.begun).cmp(&(other.ends, other.begun))
    }
}

/// The runs of a simulation of one policy. If the policy has refunds, the same policy without
/// refunds runs too, and the difference between the two results is the effect of the refunds.
#[derive(Debug)]
pub(super) struct PolicyRun<S> {
    gate: SimulatedLimiter<S>,
    plain: PlainPlan,
    tally: Tally,
    without_refunds: Option<(SimulatedLimiter<S>, u64)>,
}

impl<S: ImmediateStore> PolicyRun<S> {
    /// Creates a trial of `policy`. `store` creates the stores.
    pub(super) fn new(policy: Policy, store: impl Fn() -> S, key: &HashKey) -> Self {
        let tally = Tally::new(&policy);
        let without_refunds = (!policy.answers().refund_statuses.is_empty()).then(|| {
            let answers =
                ResponseSettings { refund_statuses: Vec::new(), ..policy.answers().clone() };
            (SimulatedLimiter::new(policy.clone().with_answers(answers), store(), key), 0)
        });
        let gate = SimulatedLimiter::new(policy, store(), key);
        Self { gate, plain: PlainPlan::default(), tally, without_refunds }
    }

    /// Evaluates the policy on `request`. As in the proxy, a request for the status path is not
    /// charged, and an ambiguous request is refused before any limit is charged.
    pub(super) async fn take(&mut self, request: &Request<'_>) -> Result<(), StoreError> {
        // Both limiters plan the same charges: their policies differ only in the answers.
        let policy = self.gate.policy();
        let (facts, key) = (request.facts(), self.gate.limiter.key());
        let is_status =
            policy.answers().status_path.as_deref() == Some(facts.path) && facts.method == "GET";
        if is_status {
            self.tally.record_unlimited(request);
            return Ok(());
        }
        let is_metered = |planned: &PlannedCharge| !planned.estimates.is_empty();
        if policy.plan_plain(&facts, key, &mut self.plain)
            && !self.plain.charges().iter().any(is_metered)
            && let Some(outcome) = self.charge(request, &policy).await?
        {
            let (evaluation, source) = (self.gate.answer.evaluation(), self.gate.answer.source());
            let evaluated = EvaluatedRequest { evaluation, source, decision: None };
            self.tally.record(request, self.plain.charges(), evaluated, outcome);
            return Ok(());
        }
        let plan = policy.plan(&facts, self.gate.limiter.key());
        if plan.ambiguity.is_some() {
            if let Some((_, refused)) = &mut self.without_refunds {
                *refused += 1;
            }
            self.tally.record_ambiguous(request);
            return Ok(());
        }
        let planned = plan.enforced.clone();
        if let Some((gate, refused)) = &mut self.without_refunds {
            let decision = gate.decide(request, plan.clone()).await?;
            *refused += u64::from(decision.outcome == RequestOutcome::Refused);
        }
        let SimulatedDecision { decision, outcome } = self.gate.decide(request, plan).await?;
        self.tally.record(request, &planned, EvaluatedRequest::of(&decision), outcome);
        Ok(())
    }

    /// Makes the charges of `request` in both limiters, without a full decision. Returns `None` if
    /// the charges need a full decision.
    async fn charge(
        &mut self,
        request: &Request<'_>,
        policy: &Policy,
    ) -> Result<Option<RequestOutcome>, StoreError> {
        let planned = self.plain.charges();
        let Some(outcome) = self.gate.charge(request, policy, planned).await? else {
            return Ok(None);
        };
        if let Some((gate, refused)) = &mut self.without_refunds {
            let policy = gate.policy();
            let outcome = gate.charge(request, &policy, planned).await?;
            *refused += u64::from(outcome == Some(RequestOutcome::Refused));
        }
        Ok(Some(outcome))
    }

    /// Returns the policy.
    pub(super) fn policy(&self) -> Arc<Revision> {
        self.gate.policy()
    }

    /// Returns the results so far.
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns whether the log does not have the actual cost of a charge that was settled, so the
    /// reserved units count as the cost.
    pub(super) const fn costs_unknown(&self) -> bool {
        self.gate.costs_unknown
    }

    /// Returns the number of requests that would have been refused if the policy had no refunds.
    /// Returns `None` if the policy has no refunds.
    pub(super) fn refused_without_refunds(&self) -> Option<u64> {
        self.without_refunds.as_ref().map(|(_, refused)| *refused)
    }
}
