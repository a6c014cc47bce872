//! The limiter: a policy, a store, and one clock reading a decision.

mod background;
mod beside;
mod completion;
mod decision;
mod forget;
mod judge;
mod metered;
mod overridden;
mod proof;
mod queue;
mod redeem;
mod reserve;
mod shedding;
mod taking;
mod trial;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tollgate_core::charge::{Charge, Operation};
use tollgate_core::policy::{ChargeOn, OnFailure, Plan, PlannedCharge, Queue, Rule, RuleMode};
pub use tollgate_core::reading::DecisionSource;
use tollgate_core::{
    Evaluation, Policy, Readings, RequestAttributes, Store, StoreError, Timestamp,
};

pub use completion::{Completion, Pending};
pub use decision::{Decision, Settlement};
pub use overridden::Overrule;
pub use queue::{MAX_QUEUED, QUEUE_POLL};
pub use redeem::{GivenBack, Outcome, RedeemError, Redeemed};
pub use reserve::{Extended, HoldOutcome, Settled, SettledLimit};
pub use shedding::{PROBE_PERIOD, Place};
pub use trial::{Shares, Trial};

use background::Background;
use judge::{Judged, Unless, evaluate_readings};
use overridden::OverriddenPlan;
use proof::Proof;
use queue::Lines;
use taking::Taking;
use trial::Tried;

use crate::clock::{Clock, SystemClock};
use crate::hash_key::HashKey;
use crate::observe::{Observer, is_of_reservations};
use crate::overrides::Overrides;
use crate::receipt::{Receipt, new_charge_id};
use crate::revision::Revision;
use crate::shed::Worker;
use crate::trace::Tracer;

/// When a plan is charged, and what becomes of it while the store has no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// When it is charged.
    pub charge: ChargeOn,
    /// What becomes of it while the store has no answer.
    pub on_failure: OnFailure,
}

impl Terms {
    /// What the rules of `plan` say.
    #[must_use]
    pub fn of(plan: &Plan<'_>) -> Self {
        Self { charge: plan.charge(), on_failure: plan.on_failure() }
    }
}

/// Decides on requests by a policy, and remembers in a store.
pub struct Limiter<S> {
    policy: ArcSwap<Revision>,
    store: S,
    clock: Box<dyn Clock>,
    key: HashKey,
    observer: Box<dyn Observer>,
    worker: Arc<Worker>,
    overrides: Arc<Overrides>,
    lines: Lines,
    tracer: Tracer,
    background: Background,
}

impl<S: Store> Limiter<S> {
    /// A limiter by the machine's clock, with a hash key of its own.
    pub fn new(policy: impl Into<Revision>, store: S) -> Self {
        let policy = policy.into();
        Self {
            worker: Arc::new(Worker::new(policy.shedding())),
            policy: ArcSwap::from_pointee(policy),
            store,
            clock: Box::new(SystemClock),
            key: HashKey::random(),
            observer: Box::new(()),
            overrides: Arc::default(),
            lines: Lines::default(),
            tracer: Tracer::default(),
            background: Background::default(),
        }
    }

    /// Takes the time from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Hashes credentials under `key`: the same on every node that shares the store.
    #[must_use]
    pub fn with_key(mut self, key: HashKey) -> Self {
        self.key = key;
        self
    }

    /// Tells `observer` of every decision.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// Opens spans by `tracer` for who asks, and tells them of decisions.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Tracer) -> Self {
        self.tracer = tracer;
        self
    }

    /// Who opens spans.
    #[must_use]
    pub const fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Does `work` after an answer, without making its client wait.
    pub(crate) fn afterwards(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.background.finish(work);
    }

    /// Waits until all is done that the [layer](crate::tower) began after answers: refunds, charges
    /// on completion, settlements, ends of leases. Await it when no request is in flight any more
    /// and before the runtime ends, which drops what is not done. As long as the store answers in
    /// time it is soon over; a bound of its own it has not.
    pub async fn finished(&self) {
        self.background.finished().await;
    }

    /// The policy in force. Who plans, charges and answers by what this returned once does so by one
    /// policy, though another one take its place meanwhile.
    #[must_use]
    pub fn policy(&self) -> Arc<Revision> {
        self.policy.load_full()
    }

    /// Puts `policy` in the place of the one in force: what is decided from now on is decided by it,
    /// and what is under way goes on by the one that it began with. Running windows live on as far
    /// as [`OnChange`](tollgate_core::OnChange) of each limit says.
    ///
    /// One caller at a time: of two that replace at once, either may be last.
    pub fn replace_policy(&self, policy: Revision) {
        let policy = policy.replacing(&self.policy.load(), self.now());
        self.observer.on_policy_replaced(&policy);
        self.worker.follow(policy.shedding());
        self.policy.store(Arc::new(policy));
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// The deployment's key.
    #[must_use]
    pub const fn key(&self) -> &HashKey {
        &self.key
    }

    /// The time by this limiter's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Decides on a request, now, and charges what its policy says.
    ///
    /// Every limit that applies is charged or none is. Where the rules charge on completion, limits
    /// are looked at instead, and [`Decision::pending`] is what they will be charged. MatchMode in
    /// shadow mode are charged beside them, on their own and at once, and stop nobody; so are limits
    /// for whom they are not enforced, and candidates, one more call of the store each. Never fails:
    /// without an answer of the store the rules' [`OnFailure`] decides, and [`Decision::source`]
    /// says so. OverrideTarget an override is about, it is decided by that ([`overrides`](Self::overrides)).
    pub fn check(
        &self,
        attributes: &RequestAttributes<'_>,
    ) -> impl Future<Output = Decision> + Send + use<'_, S> {
        self.check_at(self.now(), attributes)
    }

    /// As [`check`](Self::check), at a time of the caller's choice.
    pub fn check_at(
        &self,
        now: Timestamp,
        attributes: &RequestAttributes<'_>,
    ) -> impl Future<Output = Decision> + Send + use<'_, S> {
        // The facts are borrowed from the request, which moves on while the store is asked.
        let policy = self.policy();
        self.check_plan_at(now, &policy, self.plan_at(now, &policy, attributes))
    }

    /// What `policy` charges this request, by its rules as [switches](crate::overrides::OverrideTarget::Rule)
    /// leave them.
    #[must_use]
    pub fn plan_at<'p>(
        &self,
        now: Timestamp,
        policy: &'p Policy,
        attributes: &RequestAttributes<'_>,
    ) -> Plan<'p> {
        if self.overrides.is_empty() {
            return policy.plan(attributes, &self.key);
        }
        policy.plan_switched(attributes, &self.key, |rule| self.overrides.switched(rule, now))
    }

    /// As [`check_at`](Self::check_at), by a plan that the caller has made already of `policy`.
    pub fn check_plan_at<'s>(
        &'s self,
        now: Timestamp,
        policy: &Arc<Revision>,
        plan: Plan<'_>,
    ) -> impl Future<Output = Decision> + Send + use<'s, S> {
        let terms = Terms::of(&plan);
        self.check_on_terms_at(now, policy, plan, terms)
    }

    /// As [`check_plan_at`](Self::check_plan_at), on the caller's terms in place of its rules': for
    /// who will never know the request's answer, or has no rules at all.
    pub fn check_on_terms_at<'s>(
        &'s self,
        now: Timestamp,
        policy: &Arc<Revision>,
        plan: Plan<'_>,
        terms: Terms,
    ) -> impl Future<Output = Decision> + Send + use<'s, S> {
        self.decide_at(now, policy, plan, terms, Taking::Charge(terms.charge), None)
    }

    fn decide_at<'s>(
        &'s self,
        now: Timestamp,
        policy: &Arc<Revision>,
        plan: Plan<'_>,
        Terms { charge, on_failure }: Terms,
        taking: Taking,
        queue: Option<Queue>,
    ) -> impl Future<Output = Decision> + Send + use<'s, S> {
        let policy = Arc::clone(policy);
        let rules = plan.rules.iter().map(|rule| Arc::clone(&rule.name)).collect();
        let Plan { rules: matched, enforced, mut shadowed, unenforced, .. } = plan;
        let Shares { enforced, counted } = self.shares(now, enforced);
        let has_shadow = !counted.is_empty()
            || matched.iter().any(|rule| rule.mode == RuleMode::Shadow)
            || !unenforced.is_empty() && !shadowed.is_empty();
        shadowed.extend(counted);
        async move {
            // One for all: what any of them charged is given back, and its leases renewed, together.
            let id = new_charge_id();
            let unless = Unless { on_failure, queue };
            let judged = self.judge(now, id, RuleMode::Enforce, enforced, taking, unless).await;
            let tried = if has_shadow || !judged.beside.is_empty() {
                // Apart: what is seldom done does not make every decision larger, which is moved.
                let shadowed = has_shadow.then_some(shadowed);
                Box::pin(self.try_beside(id, judged, shadowed, taking)).await
            } else {
                Tried { judged, shadow: None, trials: Vec::new() }
            };
            let Tried { judged, shadow, trials } = tried;
            let Judged { evaluation, source, proof, by: overrides, .. } = judged;
            let Proof { receipt, reserved, pending } = proof;
            let decision = Decision {
                policy,
                rules,
                evaluation,
                shadow,
                trials,
                overrides,
                source,
                on_failure,
                charge,
                receipt,
                reserved,
                pending,
            };
            self.observer.on_decision(&decision);
            self.tracer.on_decision(&decision);
            decision
        }
    }

    /// Whether `planned` would be admitted now and how its limits stand; nothing is charged.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer.
    pub async fn look_at(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
    ) -> Result<(Evaluation, DecisionSource), StoreError> {
        if self.overrides.is_empty() {
            return self.look_at_planned(now, planned).await;
        }
        match self.overridden(now, planned.to_vec()).planned {
            OverriddenPlan::PlannedCharge(planned) => self.look_at_planned(now, &planned).await,
            OverriddenPlan::Blocked(_, statuses) => {
                Ok((Evaluation { now, statuses }, DecisionSource::DenyCache))
            }
        }
    }

    async fn look_at_planned(
        &self,
        now: Timestamp,
        planned: &[PlannedCharge],
    ) -> Result<(Evaluation, DecisionSource), StoreError> {
        let readings =
            self.query(now, planned, |planned| Operation::Peek { cost: planned.cost }).await?;
        Ok((evaluate_readings(now, planned, &readings), readings.source()))
    }

    /// How every visible limit stands that the caller of this request can meet and that is enforced
    /// for it; nothing is charged.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer.
    pub fn statuses(
        &self,
        attributes: &RequestAttributes<'_>,
    ) -> impl Future<Output = Result<Evaluation, StoreError>> + Send + use<'_, S> {
        let (policy, now) = (self.policy.load(), self.clock.now());
        let planned = if self.overrides.is_empty() {
            policy.status_plan(attributes, &self.key)
        } else {
            let switch = |rule: &Rule| self.overrides.switched(rule, now);
            policy.status_plan_switched(attributes, &self.key, switch)
        };
        let planned = self.shares(now, planned).enforced;
        async move { self.look_at(now, &planned).await.map(|(evaluation, _)| evaluation) }
    }

    /// Gives everything back that `receipt` proves, where its window is not over.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer; what was charged then stays charged.
    pub async fn refund(&self, receipt: Receipt) -> Result<(), StoreError> {
        self.refund_at(self.now(), receipt).await
    }

    /// As [`refund`](Self::refund), at a time of the caller's choice.
    ///
    /// # Errors
    /// As [`refund`](Self::refund).
    pub async fn refund_at(&self, now: Timestamp, receipt: Receipt) -> Result<(), StoreError> {
        self.give_back(now, &receipt).await
    }

    /// As [`refund_at`](Self::refund_at), by one of those who share `receipt`, and once.
    pub(crate) async fn give_back(
        &self,
        now: Timestamp,
        receipt: &Receipt,
    ) -> Result<(), StoreError> {
        if receipt.is_empty() {
            return Ok(());
        }
        let refunds = receipt.refunds();
        let refunded = self.store.apply(now, &refunds).await;
        self.tell_held(&refunds, &refunded);
        self.lines.freed(receipt);
        refunded.map(|_| ())
    }

    /// Tells the observer of `charges` that open or end what is held for a time.
    pub(super) fn tell_held(&self, charges: &[Charge<'_>], answer: &Result<Readings, StoreError>) {
        if charges.iter().any(is_of_reservations) {
            self.observer.on_reservation(charges, answer);
        }
    }

    /// Puts the end of every lease that `receipt` proves off to one lease from now.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer; the leases then end when they would have.
    pub async fn renew(&self, receipt: &Receipt) -> Result<(), StoreError> {
        if receipt.is_empty() {
            return Ok(());
        }
        self.store.apply(self.now(), &receipt.renewals()).await.map(|_| ())
    }
}

impl<S: fmt::Debug> fmt::Debug for Limiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("store", &self.store).finish_non_exhaustive()
    }
}
