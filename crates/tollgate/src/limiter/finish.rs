//! The end of requests: refunds, charges on completion, renewals of permits.

use std::sync::Arc;

use tollgate_core::policy::{ChargeOn, PlannedCharge};
use tollgate_core::{Admission, Charge, Store, StoreError, Timestamp};

use super::Limiter;
use crate::decision::{Completion, Decision, Pending, Settlement};
use crate::receipt::{Receipt, new_charge_id};

impl<S: Store> Limiter<S> {
    /// Makes the charges of `pending`, now that the response is known.
    ///
    /// No limit is charged above its quota. However, the requests were admitted before they were
    /// charged: if several requests peeked at the last units at the same time, all of them were
    /// admitted, and only the first of them to complete are charged. More requests than the quota
    /// can therefore pass. The excess is at most the cost of the requests that are in flight at the
    /// same time. Each request that could not be charged results in [`Completion::Overrun`].
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. The caller then does not know whether the store
    /// made the charges.
    pub async fn complete(&self, pending: Pending) -> Result<Completion, StoreError> {
        self.complete_at(self.now(), pending).await
    }

    /// Completes a charge like [`complete`](Self::complete), at the time `now`.
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
        let readings = self.charge_planned(now, &planned, new_charge_id()).await?;
        if readings.all_admitted() {
            return Ok(Completion::Charged);
        }
        // One limit is full, so this second attempt charges the limits that are not full. If
        // another limit fills up before the second attempt, nothing is charged, and there is no
        // third attempt.
        let mut readings = readings.iter();
        planned
            .retain(|_| readings.next().is_some_and(|reading| reading.admission == Admission::Now));
        self.charge_planned(now, &planned, new_charge_id()).await?;
        Ok(Completion::Overrun)
    }

    /// Refunds the charges of `receipt` in windows that have not ended.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. The charges then remain.
    pub async fn refund(&self, receipt: Receipt) -> Result<(), StoreError> {
        self.refund_at(self.now(), receipt).await
    }

    /// Refunds like [`refund`](Self::refund), at the time `now`.
    ///
    /// # Errors
    /// As [`refund`](Self::refund).
    pub async fn refund_at(&self, now: Timestamp, receipt: Receipt) -> Result<(), StoreError> {
        self.refund_shared(now, &receipt).await
    }

    /// Refunds a receipt that is shared with a renewal task. The caller must refund the receipt
    /// only once.
    pub(crate) async fn refund_shared(
        &self,
        now: Timestamp,
        receipt: &Receipt,
    ) -> Result<(), StoreError> {
        if receipt.is_empty() {
            return Ok(());
        }
        self.apply_refunds(now, &receipt.refunds(), &[Some(receipt)]).await
    }

    /// Sends `refunds`, the operations that refund `receipts`, to the store in one call.
    pub(super) async fn apply_refunds(
        &self,
        now: Timestamp,
        refunds: &[Charge<'_>],
        receipts: &[Option<&Receipt>],
    ) -> Result<(), StoreError> {
        let answer = self.store.apply(now, refunds).await;
        self.notify_holds(refunds, &answer);
        for receipt in receipts.iter().flatten() {
            self.queues.slots_freed(receipt);
            self.hold_times.released(receipt, now);
        }
        answer.map(|_| ())
    }

    /// Renews every permit of `receipt`. Each permit then expires after its full lifetime, counted
    /// from now.
    ///
    /// # Errors
    /// [`StoreError`] if the store does not answer. The permits then expire at their previous time.
    pub async fn renew(&self, receipt: &Receipt) -> Result<(), StoreError> {
        if receipt.is_empty() {
            return Ok(());
        }
        self.store.apply(self.now(), &receipt.renewals()).await.map(|_| ())
    }
}

impl<S: Store + 'static> Limiter<S> {
    /// Completes `decision` when its response is known. Makes the charges of `pending`, except the
    /// units that a response with the effect `settlement` makes free. Refunds the charges that such
    /// a response makes free. Updates the evaluation that the client receives. The store calls run
    /// in the background.
    pub(crate) fn finish(
        self: &Arc<Self>,
        decision: &mut Decision,
        pending: &mut Option<Pending>,
        settlement: Settlement,
    ) {
        // A receipt may also contain charges of rules in shadow mode.
        let receipt = decision.receipt.take_if(|receipt| receipt.is_refunded(settlement));
        let is_kept = receipt.is_none() && !decision.is_refunded(settlement);
        if decision.charge == ChargeOn::Arrival && is_kept {
            return;
        }
        let now = self.now();
        let pending = pending.take().and_then(|pending| pending.settled(settlement));
        self.complete_in_background(now, pending);
        if let Some(receipt) = receipt {
            self.refund_receipt_in_background(now, receipt.refundable(settlement));
        }
        decision.settle(settlement, now);
    }

    /// Refunds like [`refund`](Self::refund), in the background. If the store does not answer, the
    /// charges remain, and permits expire. [`finished`](Self::finished) waits for the refund.
    pub fn refund_in_background(self: &Arc<Self>, receipt: Receipt) {
        if !receipt.is_empty() {
            self.refund_receipt_in_background(self.now(), receipt);
        }
    }

    /// Releases the permits of `receipt` in the background. Units of other limits remain charged.
    pub fn release_in_background(self: &Arc<Self>, receipt: Receipt) {
        let (_, permits) = receipt.split_permits();
        self.refund_in_background(permits);
    }

    /// Releases the permits of `decision` in the background, for a caller that does not report the
    /// end of the request. The receipt of the decision keeps the other charges.
    pub fn release_permits_of(self: &Arc<Self>, decision: &mut Decision) {
        if let Some(receipt) = decision.receipt.take() {
            let (counted, permits) = receipt.split_permits();
            decision.receipt = Some(counted);
            self.refund_in_background(permits);
        }
    }

    fn refund_receipt_in_background(self: &Arc<Self>, now: Timestamp, receipt: Receipt) {
        let limiter = Arc::clone(self);
        self.in_background(async move {
            let _ = limiter.refund_at(now, receipt).await;
        });
    }

    /// Makes the charges of `pending`, in the background.
    pub(crate) fn complete_in_background(
        self: &Arc<Self>,
        now: Timestamp,
        pending: Option<Pending>,
    ) {
        if let Some(pending) = pending {
            let limiter = Arc::clone(self);
            self.in_background(async move {
                // The observer receives the outcome. If the store does not answer, the charges are
                // not sent again, because the store may have made them.
                let _ = limiter.complete_at(now, pending).await;
            });
        }
    }
}
