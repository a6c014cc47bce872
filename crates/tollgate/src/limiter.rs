//! The limiter, which decides on requests by a policy, with the counters in a store. The limiter
//! reads the clock once per decision.
//!
//! [`Limiter::decide`] is the general function; [`Limiter::check`] and [`Limiter::reserve`] call
//! `decide` with the usual settings. [`Limiter::decide_at_once`] makes the same decision without a
//! future, if the store answers at once. [`Limiter::check_now`] decides without a future and without an
//! allocation, if the decision needs only the policy and a store that answers immediately.

mod background;
mod candidate;
mod charge_mode;
mod charge_record;
mod counted;
mod counter_key;
mod decide;
mod evaluate;
mod finish;
mod forget;
mod held_receipt;
pub(crate) mod hold_times;
mod immediate;
mod peek;
mod queue;
mod redeem;
mod reserve;
mod settle;
mod start;
mod unpaid;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use tokio::task::JoinHandle;
pub use tollgate_core::reading::DecisionSource;
use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

pub use crate::decision::{
    AppliedOverride, CandidateOutcome, ChargeRole, Completion, Decision, EvaluatedCharge, Pending,
    PlanPosition, Settlement,
};
pub use charge_mode::Reservation;
pub use decide::DecisionRequest;
pub use immediate::{Answer, ImmediateDecision, Workspace};
pub use peek::Peek;
pub use queue::{MAX_QUEUED, QUEUE_POLL};
pub use redeem::{Outcome, RedeemError, Redeemed, Refunded};
pub use reserve::{Extended, HoldOutcome, Settled, SettledLimit};
pub use start::{AdmissionPermits, PROBE_PERIOD};
pub use unpaid::{MAX_UNPAID, MAX_UNPAID_WAIT};

use background::Background;
use hold_times::HoldTimes;
use queue::Queues;
pub(crate) use start::Started;
use unpaid::UnpaidCosts;

use crate::clock::{Clock, CounterClock};
use crate::hash_key::HashKey;
use crate::observe::{Observer, is_hold};
use crate::overrides::Overrides;
use crate::revision::Revision;
use crate::shed::Worker;
use crate::tenants::Tenants;
use crate::trace::Tracer;

/// A rate limiter that decides on requests by a policy, with the counters in the store `S`.
pub struct Limiter<S> {
    policy: ArcSwap<Revision>,
    store: S,
    clock: Box<dyn Clock>,
    key: HashKey,
    observer: Box<dyn Observer>,
    /// Whether an observer was set. If an observer was set, every decision must notify the
    /// observer.
    is_observed: bool,
    worker: Arc<Worker>,
    overrides: Arc<Overrides>,
    tenants: Arc<Tenants>,
    queues: Queues,
    hold_times: HoldTimes,
    unpaid: UnpaidCosts,
    tracer: Tracer,
    background: Background,
}

impl<S: Store> Limiter<S> {
    /// Creates a limiter with a [`CounterClock`] and a random hash key.
    ///
    /// The clock differs from the machine's time by at most a millisecond. When the machine's time
    /// is set, the clock follows within 10 ms. The first such clock of a process calibrates the
    /// processor's counter, for up to 200 ms.
    pub fn new(policy: impl Into<Revision>, store: S) -> Self {
        let tenants = Arc::new(Tenants::default());
        let policy = policy.into().with_tenants(&tenants);
        Self {
            worker: Arc::new(Worker::new(policy.shedding())),
            policy: ArcSwap::from_pointee(policy),
            store,
            clock: Box::new(CounterClock::new()),
            key: HashKey::random(),
            observer: Box::new(()),
            is_observed: false,
            overrides: Arc::default(),
            tenants,
            queues: Queues::default(),
            hold_times: HoldTimes::default(),
            unpaid: UnpaidCosts::default(),
            tracer: Tracer::default(),
            background: Background::default(),
        }
    }

    /// Sets the clock from which the limiter reads the time of each decision.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Sets the key under which subjects are hashed. All nodes that share a store need the same
    /// key.
    #[must_use]
    pub fn with_key(mut self, key: HashKey) -> Self {
        self.key = key;
        self
    }

    /// Sets the observer, which is notified of every decision.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Box::new(observer);
        self.is_observed = true;
        self
    }

    /// Sets the tracer, which opens spans for requests and records decisions in them.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Tracer) -> Self {
        self.tracer = tracer;
        self
    }

    /// Returns the tracer.
    #[must_use]
    pub const fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Remembers the current async runtime for work that begins outside of one.
    pub(crate) fn remember_runtime(&self) {
        self.background.remember_runtime();
    }

    /// Runs `work` after a response was made, without delaying the client of this response.
    pub(crate) fn in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.background.run(work);
    }

    /// Spawns a task that executes `work` to its end, even if the returned handle is dropped.
    /// [`finished`](Self::finished) waits for the task.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime, like [`tokio::spawn`].
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.background.spawn(work)
    }

    /// Waits until the background work has ended: refunds, charges on completion, settlements,
    /// releases of permits, and the tasks of [`spawn`](Self::spawn).
    ///
    /// Await this future when no request is in flight any more and before the runtime ends, because
    /// the end of the runtime drops unfinished work. This function has no timeout. The background
    /// work ends soon if the store answers each call within a deadline.
    pub async fn finished(&self) {
        self.background.finished().await;
    }

    /// Returns the current policy.
    ///
    /// The returned `Arc` stays valid when the policy is replaced, so a caller that plans, charges
    /// and answers with it uses one consistent version.
    #[must_use]
    pub fn policy(&self) -> Arc<Revision> {
        self.policy.load_full()
    }

    /// Returns the current policy like [`policy`](Self::policy), for a short use. The reference count
    /// that all threads share is not changed.
    pub(crate) fn borrow_policy(&self) -> Guard<Arc<Revision>> {
        self.policy.load()
    }

    /// Replaces the current policy. A decision that has begun continues with the policy with which
    /// it began. The setting [`OnChange`](tollgate_core::OnChange) of each limit determines how
    /// running windows continue.
    ///
    /// Call this function from one task at a time: after two concurrent calls, either policy may be
    /// the current one.
    pub fn replace_policy(&self, policy: Revision) {
        let policy = policy.replacing(&self.policy.load(), self.now()).with_tenants(&self.tenants);
        self.observer.on_policy_replaced(&policy);
        self.worker.follow(policy.shedding());
        self.policy.store(Arc::new(policy));
    }

    /// Returns the table of tenants. A policy uses the table if it [names
    /// tenants](tollgate_core::Policy::with_tenants).
    #[must_use]
    pub const fn tenants(&self) -> &Arc<Tenants> {
        &self.tenants
    }

    /// Returns the store that keeps the counters.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// Returns the key under which subjects are hashed.
    #[must_use]
    pub const fn key(&self) -> &HashKey {
        &self.key
    }

    /// Returns the current time of the clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns whether the limiter has no override, no tracer and no unpaid cost.
    fn has_only_policy(&self) -> bool {
        !self.tracer.is_on() && self.overrides.is_empty() && self.unpaid.is_empty()
    }

    /// Notifies the observer of `answer` if one of `charges` opens or ends a permit or a
    /// reservation.
    fn notify_holds(&self, charges: &[Charge<'_>], answer: &Result<Readings, StoreError>) {
        if charges.iter().any(is_hold) {
            self.observer.on_reservation(charges, answer);
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Limiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("store", &self.store).finish_non_exhaustive()
    }
}
