//! The limiter's decisions. [`Limiter::decide`] makes the decision for every request, and
//! [`Limiter::decide_at_once`] makes the same decision without a future if the store answers at once.

use std::future::Future;
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate_core::policy::{Ambiguity, ChargeOn, OnFailure, Plan, PlannedCharge, Queue, RuleMode};
use tollgate_core::{Charge, Millis, Policy, Readings, RequestAttributes, Store, Timestamp};

use super::Limiter;
use super::charge_mode::{Action, ChargeMode, Reservation};
use super::evaluate::{FailureTerms, Resolved};
use crate::decision::{ChargePositions, Decision, Evaluated};
use crate::overrides::Effect;
use crate::receipt::{Receipt, new_charge_id};
use crate::revision::Revision;
use crate::store::INLINE_CHARGES;

/// The limiter's input for one decision: the charges of one request, and how to make them.
///
/// [`new`](Self::new) takes the settings from the rules of the plan. To replace single settings,
/// use the struct update syntax.
///
/// # Examples
///
/// A caller that does not see the response must charge on arrival, whatever the rules say:
///
/// ```
/// use tollgate::model::policy::ChargeOn;
/// use tollgate::model::{RequestAttributes, Store};
/// use tollgate::limiter::{Decision, DecisionRequest, Limiter};
///
/// async fn check_on_arrival<S: Store>(limiter: &Limiter<S>, facts: &RequestAttributes<'_>) -> Decision {
///     let (now, policy) = (limiter.now(), limiter.policy());
///     let plan = limiter.plan_at(now, &policy, facts);
///     let request = DecisionRequest {
///         charge: ChargeOn::Arrival,
///         ..DecisionRequest::new(now, &policy, plan)
///     };
///     limiter.decide(request).await
/// }
/// ```
#[derive(Debug)]
pub struct DecisionRequest<'p> {
    /// The time of the decision.
    pub now: Timestamp,
    /// The policy that made the plan.
    pub policy: &'p Arc<Revision>,
    /// The charges that the policy plans for the request.
    pub plan: Plan<'p>,
    /// When the enforced charges are made. With [`Reservation::All`], the units are always reserved
    /// on arrival.
    pub charge: ChargeOn,
    /// How the request is decided while the store does not answer.
    pub on_failure: OnFailure,
    /// The limits on which units are reserved until the real cost of the request is known.
    pub reservation: Reservation,
    /// How long the request waits for a free slot of a concurrency limit; `None` means that the
    /// request does not wait. After a wait, the time of the evaluation is the time at which the
    /// decision was made.
    pub queue: Option<Queue>,
    /// Whether the charges are one of several parts of a request that are decided separately. The
    /// observer and the tracer then do not receive the decision on the part, and the caller
    /// [reports](Limiter::report) one decision on the whole request.
    pub is_part: bool,
}

impl<'p> DecisionRequest<'p> {
    /// Creates a request for `plan`, with the settings of the plan's rules. The request reserves
    /// nothing and does not wait for a slot.
    #[must_use]
    pub fn new(now: Timestamp, policy: &'p Arc<Revision>, plan: Plan<'p>) -> Self {
        let (charge, on_failure) = (plan.charge(), plan.on_failure());
        let (reservation, queue, is_part) = (Reservation::Nothing, None, false);
        Self { now, policy, plan, charge, on_failure, reservation, queue, is_part }
    }

    /// Creates a request for the charges `enforced`, which no rule planned. The charges are made on
    /// arrival.
    #[must_use]
    pub fn of_charges(
        now: Timestamp,
        policy: &'p Arc<Revision>,
        enforced: Vec<PlannedCharge>,
        on_failure: OnFailure,
    ) -> Self {
        let plan = Plan { enforced, ..Plan::default() };
        let (charge, reservation) = (ChargeOn::Arrival, Reservation::Nothing);
        let (queue, is_part) = (None, false);
        Self { now, policy, plan, charge, on_failure, reservation, queue, is_part }
    }
}

/// The enforced charges of a plan, split into charges on limits that are enforced for their
/// subjects and charges on limits that are not.
pub(super) struct Split {
    pub(super) enforced: Vec<PlannedCharge>,
    pub(super) counted: Vec<PlannedCharge>,
    pub(super) positions: ChargePositions,
}

impl<S: Store> Limiter<S> {
    /// Checks a request now against the current policy. Charges every limit that applies, or none.
    ///
    /// Short for [`decide`](Self::decide) with the policy's own [plan](Self::plan_at) and settings.
    pub fn check(
        &self,
        attributes: &RequestAttributes<'_>,
    ) -> impl Future<Output = Decision> + Send + use<'_, S> {
        let (now, policy) = (self.now(), self.policy());
        let plan = self.plan_at(now, &policy, attributes);
        self.decide(DecisionRequest::new(now, &policy, plan))
    }

    /// Checks a request now, and reserves units of every limit that applies, or of none. A
    /// reservation lasts for `hold_for`, or for the longest time that the limit allows, whichever
    /// is shorter. The limit's settings determine whether the units of an expired reservation are
    /// released or charged.
    ///
    /// Short for [`decide`](Self::decide) with [`Reservation::All`].
    pub fn reserve(
        &self,
        attributes: &RequestAttributes<'_>,
        hold_for: Millis,
    ) -> impl Future<Output = Decision> + Send + use<'_, S> {
        let (now, policy) = (self.now(), self.policy());
        let plan = self.plan_at(now, &policy, attributes);
        let reservation = Reservation::All(hold_for);
        self.decide(DecisionRequest { reservation, ..DecisionRequest::new(now, &policy, plan) })
    }

    /// Returns the charges that `policy` plans for a request.
    /// [Overrides](crate::overrides::OverrideTarget::Rule) can switch rules off or to shadow mode.
    /// Notifies the observer of the plan.
    #[must_use]
    pub fn plan_at<'p>(
        &self,
        now: Timestamp,
        policy: &'p Policy,
        attributes: &RequestAttributes<'_>,
    ) -> Plan<'p> {
        let plan = if self.overrides.is_empty() {
            policy.plan(attributes, &self.key)
        } else {
            policy.plan_switched(attributes, &self.key, |rule| self.overrides.switched(rule, now))
        };
        self.observer.on_plan(now, policy, attributes, &plan);
        plan
    }

    /// Reports to the observer that the caller refuses a request because of [`Plan::ambiguity`],
    /// without a decision.
    pub fn report_ambiguous(&self, now: Timestamp, ambiguity: Ambiguity) {
        self.observer.on_ambiguous_request(now, ambiguity);
    }

    /// Reports to the observer and the tracer the decision on a request of which the
    /// [parts](DecisionRequest::is_part) were decided separately.
    pub fn report(&self, decision: &Decision) {
        self.observer.on_decision(decision);
        self.tracer.on_decision(decision);
    }

    /// Decides on a request: charges every limit that is enforced for the request, or none.
    ///
    /// If the rules charge on completion, this call only peeks at the limits, and
    /// [`Decision::pending`] contains the charges. A second store call charges the limits of shadow
    /// rules and the limits that are not enforced for their subjects, except concurrency limits of
    /// which the request already holds a permit. A third store call charges candidates. The second
    /// and the third call cannot reject the request. An active override replaces the policy's limit
    /// for its subject.
    ///
    /// Never fails. If the store does not answer, [`DecisionRequest::on_failure`] decides, and
    /// [`Decision::source`] names the component that decided. The returned future borrows nothing
    /// of `request`.
    ///
    /// If the returned future is dropped before its end, permits of concurrency limits may stay
    /// held until they expire. [`decide_or_release`](Self::decide_or_release) releases them.
    pub fn decide<'s>(
        &'s self,
        request: DecisionRequest<'_>,
    ) -> impl Future<Output = Decision> + Send + use<'s, S> {
        self.decide_or_abandon(request, drop)
    }

    /// Decides like [`decide`](Self::decide). If the returned future is dropped between the
    /// enforced charges and the end of the decision, calls `abandon` with each receipt of the
    /// charges that were made. Otherwise nothing would release the permits of these receipts.
    fn decide_or_abandon<'s, A>(
        &'s self,
        request: DecisionRequest<'_>,
        abandon: A,
    ) -> impl Future<Output = Decision> + Send + use<'s, S, A>
    where
        A: Fn(Receipt) + Copy + Send,
    {
        let DecisionRequest { now, policy, plan, charge, on_failure, reservation, queue, is_part } =
            request;
        let charge = if let Reservation::All(_) = reservation { ChargeOn::Arrival } else { charge };
        let mode = ChargeMode::new(reservation, charge, now);
        let policy = Arc::clone(policy);
        let rules = plan.rules.iter().map(|rule| Arc::clone(&rule.name)).collect();
        let Plan { rules: matched, enforced, mut shadowed, .. } = plan;
        let Split { enforced, counted, mut positions } = self.split(now, enforced, shadowed.len());
        shadowed.extend(counted);
        let has_counted =
            !shadowed.is_empty() || matched.iter().any(|rule| rule.mode == RuleMode::Shadow);
        let (charges, overrides) =
            self.apply_overrides(now, enforced, Evaluated::Enforced, &mut positions);
        let unpaid = match &charges {
            Resolved::Charges(planned) if !self.unpaid.is_empty() => Some(planned.clone()),
            _ => None,
        };
        async move {
            if let Some(planned) = unpaid {
                Box::pin(self.charge_unpaid(now, &planned)).await;
            }
            // All charges of the request share this id, so they are refunded and renewed together.
            let id = new_charge_id();
            let terms = FailureTerms { on_failure, queue, abandon };
            let mut outcome = self.evaluate(now, id, RuleMode::Enforce, charges, mode, terms).await;
            let candidates = std::mem::take(&mut outcome.candidates);
            let mut decision = outcome.into_decision(policy, rules, on_failure, charge);
            decision.positions = positions;
            if !decision.is_unanswered() {
                decision.overrides = overrides;
            }
            if has_counted || !candidates.is_empty() {
                // This future is boxed because it is rarely needed and must not enlarge the future
                // of every decision.
                let counted = has_counted.then_some(shadowed);
                let counted =
                    self.evaluate_counted(id, decision, abandon, counted, candidates, mode);
                decision = Box::pin(counted).await;
            }
            if !is_part {
                self.report(&decision);
            }
            decision
        }
    }

    /// Decides like [`decide`](Self::decide), without a future. Returns `None`, and leaves `request`
    /// unchanged, if the decision has to wait or needs more than one store call. Call
    /// [`decide`](Self::decide) in this case.
    ///
    /// The conditions are: the store [answers at once](Store::apply_at_once), no matching rule is in
    /// shadow mode or switched by an override, every limit is enforced for its subject and charged
    /// now, no limit has a candidate, the request reserves nothing and does not wait for a slot, and
    /// the limiter has no override, no tracer and no unpaid cost (see
    /// [`MAX_UNPAID`](super::MAX_UNPAID)).
    ///
    /// If a decision is returned, `request` has no charges any more. Do not decide on `request`
    /// again: without charges, it is admitted.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::limiter::{Decision, DecisionRequest, Limiter};
    /// use tollgate::model::{RequestAttributes, Store};
    ///
    /// async fn check<S: Store>(limiter: &Limiter<S>, facts: &RequestAttributes<'_>) -> Decision {
    ///     let (now, policy) = (limiter.now(), limiter.policy());
    ///     let plan = limiter.plan_at(now, &policy, facts);
    ///     let mut request = DecisionRequest::new(now, &policy, plan);
    ///     match limiter.decide_at_once(&mut request) {
    ///         Some(decision) => decision,
    ///         None => limiter.decide(request).await,
    ///     }
    /// }
    /// ```
    #[must_use = "the charges are made, and the request has no charges any more"]
    pub fn decide_at_once(&self, request: &mut DecisionRequest<'_>) -> Option<Decision> {
        let DecisionRequest { now, policy, ref mut plan, charge, on_failure, .. } = *request;
        let mode = ChargeMode::new(request.reservation, charge, now);
        let is_plain = |planned: &PlannedCharge| {
            let limit = &planned.limit;
            mode.action(planned) == Action::Charge
                && limit.candidate().is_none()
                && limit.enforces(&planned.subject, &self.key)
        };
        let is_immediate = request.queue.is_none()
            && !matches!(request.reservation, Reservation::All(_))
            && self.has_only_policy()
            && plan.shadowed.is_empty()
            && plan.overridden_rules.is_empty()
            && plan.rules.iter().all(|rule| rule.mode == RuleMode::Enforce)
            && plan.enforced.iter().all(is_plain);
        if !is_immediate {
            return None;
        }
        let id = new_charge_id();
        let charges: SmallVec<[Charge<'_>; INLINE_CHARGES]> =
            plan.enforced.iter().map(|planned| planned.charge(id)).collect();
        let readings = match charges.is_empty() {
            true => Ok(Readings::new()),
            false => self.store.apply_at_once(now, &charges)?,
        };
        self.notify_holds(&charges, &readings);
        drop(charges);
        let planned = std::mem::take(&mut plan.enforced);
        let rules = plan.rules.iter().map(|rule| Arc::clone(&rule.name)).collect();
        let outcome = self.outcome(now, id, RuleMode::Enforce, planned, mode, readings);
        let decision = outcome.into_decision(Arc::clone(policy), rules, on_failure, charge);
        if !request.is_part {
            self.observer.on_decision(&decision);
        }
        Some(decision)
    }

    /// Splits `planned` by whether the limit of each charge is enforced for its subject at `now`.
    /// `shadowed` is the number of shadowed charges in the same plan. The limit of an override is
    /// always enforced, unless the override only counts.
    pub(super) fn split(
        &self,
        now: Timestamp,
        planned: Vec<PlannedCharge>,
        shadowed: usize,
    ) -> Split {
        let is_enforced = |planned: &PlannedCharge| self.is_enforced(now, planned);
        if planned.iter().all(is_enforced) {
            let (counted, positions) = (Vec::new(), ChargePositions::default());
            return Split { enforced: planned, counted, positions };
        }
        let are_enforced: Vec<bool> = planned.iter().map(is_enforced).collect();
        let positions = ChargePositions::split(&are_enforced, shadowed);
        let (mut enforced, mut counted) = (Vec::new(), Vec::new());
        for (planned, is_enforced) in planned.into_iter().zip(are_enforced) {
            let list = if is_enforced { &mut enforced } else { &mut counted };
            list.push(planned);
        }
        Split { enforced, counted, positions }
    }

    /// Returns whether the limit of `planned` is enforced for its subject at `now`.
    fn is_enforced(&self, now: Timestamp, planned: &PlannedCharge) -> bool {
        let PlannedCharge { limit, subject, .. } = planned;
        match self.overrides.find(limit, subject, &self.key, now) {
            None => limit.enforces(subject, &self.key),
            Some(definition) => definition.effect != Effect::Counted,
        }
    }
}

impl<S: Store + 'static> Limiter<S> {
    /// Decides like [`decide`](Self::decide), for a client that may disconnect. If the returned
    /// future is dropped before its end, the permits of the charges that were made are released in
    /// the background. Other charges remain.
    pub fn decide_or_release<'s>(
        self: &'s Arc<Self>,
        request: DecisionRequest<'_>,
    ) -> impl Future<Output = Decision> + Send + use<'s, S> {
        self.decide_or_abandon(request, move |receipt| self.release_in_background(receipt))
    }
}
