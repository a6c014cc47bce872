//! Costs that the answer tells: reserved when a request arrives, settled at its end.

use std::sync::Arc;

use tollgate_core::policy::{Meter, Plan, Queue};
use tollgate_core::time::MAX_WINDOW;
use tollgate_core::{Cost, Store, StoreError, Timestamp};

use super::taking::Taking;
use super::{Decision, Limiter, Terms};
use crate::receipt::Receipt;
use crate::revision::Revision;

impl<S: Store> Limiter<S> {
    /// As [`check_plan_at`](Self::check_plan_at), for who sees the request's answer: what costs what
    /// the answer tells is reserved, in the same step, and [`Decision::reserved`] is the proof of
    /// it. Everybody else charges what would be reserved.
    ///
    /// With a [`queue`](Plan::queue) it waits for a place in flight: the decision's evaluation has the
    /// time at which it was made in the end.
    ///
    /// A limit holds it for its [`ReservationTerms::max`](tollgate_core::ReservationTerms::max); whoever serves
    /// longer [holds on](Self::hold_on). At the end of the answer it is
    /// [settled](Self::settle_metered_at), or released by [`refund`](Self::refund).
    pub fn check_metered_at<'s>(
        &'s self,
        now: Timestamp,
        policy: &Arc<Revision>,
        plan: Plan<'_>,
        queue: Option<Queue>,
    ) -> impl Future<Output = Decision> + Send + use<'s, S> {
        let terms = Terms::of(&plan);
        let taking = Taking::Metered(terms.charge, now.after(MAX_WINDOW));
        self.decide_at(now, policy, plan, terms, taking, queue)
    }

    /// Puts the cost that each meter tells in the place of what `reserved` holds; what a meter does
    /// not tell costs what was reserved of it. Settled again, it changes nothing more.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer: then the reservation runs out as it would have.
    pub async fn settle_metered_at(
        &self,
        now: Timestamp,
        reserved: Receipt,
        measured: impl Fn(&Meter) -> Option<Cost> + Send,
    ) -> Result<(), StoreError> {
        self.settle_measured(now, &reserved, measured).await
    }

    /// As [`settle_metered_at`](Self::settle_metered_at), by one of those who share `reserved`.
    pub(crate) async fn settle_measured(
        &self,
        now: Timestamp,
        reserved: &Receipt,
        measured: impl Fn(&Meter) -> Option<Cost> + Send,
    ) -> Result<(), StoreError> {
        let charges = reserved.measurements(measured);
        if charges.is_empty() {
            return Ok(());
        }
        let answer = self.store.apply(now, &charges).await;
        self.tell_held(&charges, &answer);
        answer.map(|_| ())
    }

    /// Puts the end of what `reserved` holds off, as far as each limit lets it.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer; it then ends when it would have.
    pub async fn hold_on(&self, reserved: &Receipt) -> Result<(), StoreError> {
        let now = self.now();
        self.store.apply(now, &reserved.extensions(now.after(MAX_WINDOW))).await.map(|_| ())
    }
}
