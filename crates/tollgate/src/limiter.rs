//! The limiter: a policy, a store, and one clock reading a decision.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use tollgate_core::charge::{Ask, Charge, ChargeId};
use tollgate_core::policy::{Mode, OnFailure, Planned};
pub use tollgate_core::reading::Source;
use tollgate_core::{Facts, Policy, Readings, Standing, Store, StoreError, Timestamp, Verdict};

use crate::clock::{Clock, SystemClock};
use crate::hash_key::HashKey;
use crate::observe::Observer;
use crate::receipt::{Receipt, new_charge_id};

/// Decides on requests by a policy, and remembers in a store.
pub struct Limiter<S> {
    policy: Arc<Policy>,
    store: S,
    clock: Box<dyn Clock>,
    key: HashKey,
    observer: Box<dyn Observer>,
}

/// What became of one request.
#[derive(Debug)]
pub struct Decision {
    /// The names of the rules that matched, in the policy's order.
    pub rules: Vec<Arc<str>>,
    /// How the limits stand that decided. Without standings if nothing had an answer.
    pub verdict: Verdict,
    /// What the rules in shadow mode would have said.
    pub shadow: Option<Verdict>,
    /// Who decided.
    pub source: Source,
    /// What its rules do while the store has no answer.
    pub on_failure: OnFailure,
    /// What was charged, if anything was.
    pub receipt: Option<Receipt>,
}

impl Decision {
    /// Whether the request may pass.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        match self.source {
            Source::Store | Source::Remembered | Source::Fallback(_) => self.verdict.is_admitted(),
            Source::Failure(_) => self.on_failure != OnFailure::Deny,
        }
    }
}

impl<S: Store> Limiter<S> {
    /// A limiter by the machine's clock, with a hash key of its own.
    pub fn new(policy: Policy, store: S) -> Self {
        Self {
            policy: Arc::new(policy),
            store,
            clock: Box::new(SystemClock),
            key: HashKey::random(),
            observer: Box::new(()),
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

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Charges a request, now, what its policy says.
    ///
    /// Every limit that applies is charged or none is. Rules in shadow mode are charged beside
    /// them, on their own, and stop nobody. Never fails: without an answer of the store the
    /// rules' [`OnFailure`] decides, and [`Decision::source`] says so.
    pub fn check(&self, facts: &Facts<'_>) -> impl Future<Output = Decision> + Send + use<'_, S> {
        self.check_at(self.clock.now(), facts)
    }

    /// As [`check`](Self::check), at a time of the caller's choice.
    pub fn check_at(
        &self,
        now: Timestamp,
        facts: &Facts<'_>,
    ) -> impl Future<Output = Decision> + Send + use<'_, S> {
        // The facts are borrowed from the request, which moves on while the store is asked.
        let plan = self.policy.plan(facts, &self.key);
        let rules = plan.rules.iter().map(|rule| Arc::clone(&rule.name)).collect();
        let on_failure = plan.on_failure();
        let has_shadow = plan.rules.iter().any(|rule| rule.mode == Mode::Shadow);
        async move {
            let (verdict, source, mut receipt) = self.charge(now, plan.enforced, on_failure).await;
            let mut shadow = None;
            if has_shadow {
                let (judged, _, charged) = self.charge(now, plan.shadowed, OnFailure::Local).await;
                shadow = Some(judged);
                receipt = match (receipt, charged) {
                    (Some(mut receipt), Some(charged)) => {
                        receipt.join(charged);
                        Some(receipt)
                    }
                    (one, other) => one.or(other),
                };
            }
            let decision = Decision { rules, verdict, shadow, source, on_failure, receipt };
            self.observer.decided(&decision);
            decision
        }
    }

    /// How every visible limit stands that the caller of this request can meet; nothing is charged.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer.
    pub fn standings(
        &self,
        facts: &Facts<'_>,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send + use<'_, S> {
        let planned = self.policy.standings_plan(facts, &self.key);
        let now = self.clock.now();
        async move {
            let readings = self.take(now, &planned, new_charge_id()).await?;
            Ok(verdict(now, &planned, &readings))
        }
    }

    /// Gives everything back that `receipt` proves, where its window is not over.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer; what was charged then stays charged.
    pub async fn refund(&self, receipt: Receipt) -> Result<(), StoreError> {
        self.refund_at(self.clock.now(), receipt).await
    }

    /// As [`refund`](Self::refund), at a time of the caller's choice.
    ///
    /// # Errors
    /// As [`refund`](Self::refund).
    pub async fn refund_at(&self, now: Timestamp, receipt: Receipt) -> Result<(), StoreError> {
        if receipt.is_empty() {
            return Ok(());
        }
        self.store.apply(now, &receipt.refunds()).await.map(|_| ())
    }

    /// Puts the end of every lease that `receipt` proves off to one lease from now.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer; the leases then end when they would have.
    pub async fn renew(&self, receipt: &Receipt) -> Result<(), StoreError> {
        if receipt.is_empty() {
            return Ok(());
        }
        self.store.apply(self.clock.now(), &receipt.renewals()).await.map(|_| ())
    }

    /// Charges everything planned or nothing, and keeps proof of what was charged.
    async fn charge(
        &self,
        now: Timestamp,
        planned: Vec<Planned>,
        on_failure: OnFailure,
    ) -> (Verdict, Source, Option<Receipt>) {
        let id = new_charge_id();
        let readings = match self.take(now, &planned, id).await {
            Ok(readings) => readings,
            Err(error) => return (Verdict::without_standings(now), Source::Failure(error), None),
        };
        let verdict = verdict(now, &planned, &readings);
        let is_charged = verdict.is_admitted() && !planned.is_empty();
        let receipt = is_charged.then(|| Receipt::new(id, planned, &readings));
        match readings.source() {
            // These rules do not ask what stands in; what it charged is given back there.
            Source::Fallback(error) if on_failure != OnFailure::Local => {
                if let Some(receipt) = receipt {
                    let _ = self.refund_at(now, receipt).await;
                }
                (Verdict::without_standings(now), Source::Failure(error), None)
            }
            source => (verdict, source, receipt),
        }
    }

    async fn take(
        &self,
        now: Timestamp,
        planned: &[Planned],
        id: ChargeId,
    ) -> Result<Readings, StoreError> {
        if planned.is_empty() {
            return Ok(Readings::new());
        }
        let charges: Vec<Charge<'_>> = planned
            .iter()
            .map(|Planned { limit, subject, cost }| {
                let ask = Ask::Take { cost: *cost, id };
                Charge { limit, subject, ask }
            })
            .collect();
        self.store.apply(now, &charges).await
    }
}

impl<S: fmt::Debug> fmt::Debug for Limiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("store", &self.store).finish_non_exhaustive()
    }
}

fn verdict(now: Timestamp, planned: &[Planned], readings: &Readings) -> Verdict {
    let standings = planned
        .iter()
        .zip(readings.iter())
        .map(|(planned, reading)| Standing::new(Arc::clone(&planned.limit), planned.cost, reading));
    Verdict { now, standings: standings.collect() }
}
