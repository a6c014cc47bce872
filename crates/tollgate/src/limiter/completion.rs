//! Charges that wait for the request's answer.

use tollgate_core::policy::PlannedCharge;
use tollgate_core::{Admission, Cost, Store, StoreError, Timestamp};

use super::Limiter;
use crate::receipt::new_charge_id;

/// What an admitted request will be charged: on arrival its limits were only looked at.
///
/// Not `Clone`: what is charged is charged once. Dropped, it is never charged, which is right for
/// an answer that is free and for no other.
#[derive(Debug)]
#[must_use = "a request that was only looked at is not charged unless it is completed"]
pub struct Pending {
    planned: Vec<PlannedCharge>,
}

/// What became of a charge that waited for the request's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Every limit was charged.
    Charged,
    /// Others were faster, and some limit has no room any more: it was left as full as it is, and
    /// the others were charged.
    Overrun,
}

impl Pending {
    /// `None` where nothing costs anything.
    pub(super) fn new(mut planned: Vec<PlannedCharge>) -> Option<Self> {
        planned.retain(|planned| planned.cost != Cost::PEEK);
        (!planned.is_empty()).then_some(Self { planned })
    }
}

impl<S: Store> Limiter<S> {
    /// Charges what a request costs whose answer is known, now.
    ///
    /// No limit passes its quota by this. Of the requests that looked at the last units together
    /// all were admitted and only the first are counted: a limit admits beyond its quota at most
    /// what the requests cost that are in flight at one time. [`Completion::Overrun`] tells of each.
    ///
    /// # Errors
    /// [`StoreError`] if the store has no answer; then nothing is known to have been charged.
    pub async fn complete(&self, pending: Pending) -> Result<Completion, StoreError> {
        self.complete_at(self.now(), pending).await
    }

    /// As [`complete`](Self::complete), at a time of the caller's choice.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub async fn complete_at(
        &self,
        now: Timestamp,
        pending: Pending,
    ) -> Result<Completion, StoreError> {
        let outcome = self.charge_pending(now, pending.planned).await;
        self.observer.on_completion(&outcome);
        outcome
    }

    async fn charge_pending(
        &self,
        now: Timestamp,
        mut planned: Vec<PlannedCharge>,
    ) -> Result<Completion, StoreError> {
        let readings = self.take(now, &planned, new_charge_id()).await?;
        if readings.all_admitted() {
            return Ok(Completion::Charged);
        }
        // A full limit keeps no other from being charged. Should one of those fill up in this very
        // moment, nothing is charged twice, and nothing is tried for ever.
        let mut readings = readings.iter();
        planned
            .retain(|_| readings.next().is_some_and(|reading| reading.admission == Admission::Now));
        self.take(now, &planned, new_charge_id()).await?;
        Ok(Completion::Overrun)
    }
}
