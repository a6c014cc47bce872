//! Ends reservations, which hold units until the real cost of a request is known.

use std::sync::Arc;

use tollgate_core::{
    Admission, Charge, Cost, DecisionSource, Limit, LimitStatus, Millis, Reading, Store,
    StoreError, Timestamp,
};

use super::Limiter;
use super::redeem::RedeemError;
use crate::receipt::{Receipt, ReceiptError, UnsealedReceipt};
use crate::revision::Revision;

/// The result of settling or extending a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldOutcome {
    /// The reservation was open, and this call settled or extended it. A settlement returns this if
    /// at least one limit still held the reservation, and an extension only if every limit did.
    Done,
    /// The receipt has not expired, but the reservation was no longer open: it was settled or
    /// released before, or a limit ended it before the receipt expired.
    Unchanged,
    /// The receipt has expired, so the limiter did not call the store.
    Expired,
}

/// The result of settling a reservation.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The policy with which the receipt was read.
    pub policy: Arc<Revision>,
    /// The limits on which the receipt reserved units and that the policy still has. Empty if the
    /// receipt has expired.
    pub limits: Vec<SettledLimit>,
    /// Whether this call settled the reservation, and if not, why.
    pub outcome: HoldOutcome,
}

/// The settlement of one limit, and the status of the limit after this settlement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledLimit {
    /// The reserved units that were returned, as a whole number. 0 if the window has ended.
    pub refunded: u64,
    /// The units that were charged beyond the reservation, as a whole number. The capacity and the
    /// overdraft of the limit bound this number.
    pub added: u64,
    /// The status of the limit after the settlement, as a request that costs one unit would receive
    /// it.
    pub status: LimitStatus,
}

/// The result of extending a reservation.
#[derive(Clone, Debug)]
pub struct Extended {
    /// The policy with which the receipt was read.
    pub policy: Arc<Revision>,
    /// Whether this call extended the reservation, and if not, why.
    pub outcome: HoldOutcome,
    /// The earliest time at which a limit releases the reservation. If the reservation was not
    /// extended, its previous end.
    pub until: Timestamp,
    /// The new text of the receipt, which the client must use from now on. The old text remains
    /// valid only until the previous end of the reservation. `None` if the reservation was not
    /// extended.
    pub receipt: Option<String>,
    /// The status of each limit of the receipt. Empty if the receipt has expired.
    pub statuses: Vec<LimitStatus>,
}

impl<S: Store> Limiter<S> {
    /// Replaces the reserved amounts of `receipt` by the real cost. `real` receives a limit and its
    /// reserved amount, and returns the real cost on this limit. If the real cost is less than the
    /// reserved amount, the rest is refunded. If the real cost is more, the excess is charged now.
    /// An excess that does not fit into the limit is carried over, as
    /// [`settle_metered_at`](Self::settle_metered_at) does.
    ///
    /// # Errors
    /// [`RedeemError`] if the receipt is not the receipt of a reservation, or if the store does not
    /// answer. In the second case the reservation still expires at its previous end.
    pub async fn settle(
        &self,
        receipt: Receipt,
        real: impl Fn(&Limit, Cost) -> Cost + Send,
    ) -> Result<Settled, RedeemError> {
        let opened = UnsealedReceipt { expires_at: Timestamp::from_millis(u64::MAX), receipt };
        self.settle_opened(self.now(), self.policy(), opened, real).await
    }

    /// Settles the receipt with the sealed text `text`, like [`settle`](Self::settle), at the time
    /// `now`. Settling the same text again has no further effect.
    ///
    /// # Errors
    /// As [`settle`](Self::settle). If the store does not answer, the text can be used again.
    pub async fn settle_at(
        &self,
        now: Timestamp,
        text: &str,
        real: impl Fn(&Limit, Cost) -> Cost + Send,
    ) -> Result<Settled, RedeemError> {
        let policy = self.policy();
        let opened = self.open(text, &policy)?;
        self.settle_opened(now, policy, opened, real).await
    }

    /// Extends the reservation of the receipt with the sealed text `text`. The new end is
    /// `hold_for` after `now`, or the latest end that a limit allows if that is earlier. Never
    /// shortens the reservation.
    ///
    /// # Errors
    /// [`RedeemError`] if the receipt is not the receipt of a reservation, or if the store does not
    /// answer. In the second case the text can be used again.
    pub async fn extend_at(
        &self,
        now: Timestamp,
        text: &str,
        hold_for: Millis,
    ) -> Result<Extended, RedeemError> {
        let policy = self.policy();
        let UnsealedReceipt { receipt, expires_at } = self.open(text, &policy)?;
        check_reserved(&receipt)?;
        let unchanged = |outcome, statuses| {
            let policy = Arc::clone(&policy);
            Extended { policy, outcome, until: expires_at, receipt: None, statuses }
        };
        if now >= expires_at {
            return Ok(unchanged(HoldOutcome::Expired, Vec::new()));
        }
        let until = now.after(hold_for);
        let receipt = self.with_overridden_limits(now, receipt);
        let readings = self.apply_at_store(now, &receipt.extensions(until)).await?;
        let status = |(limit, reading): (&Arc<Limit>, &Reading)| {
            LimitStatus::new(Arc::clone(limit), Cost::PEEK, reading)
        };
        let statuses = receipt.limits().zip(&readings).map(status).collect();
        if readings.is_empty() || readings.iter().any(|reading| reading.admission != Admission::Now)
        {
            return Ok(unchanged(HoldOutcome::Unchanged, statuses));
        }
        // A limit on which the reservation already ends later keeps that later end.
        let receipt = receipt.extended(until.max(expires_at));
        let until = receipt.ends_at(now).unwrap_or(until);
        let text = receipt.seal(self.key(), now);
        let outcome = HoldOutcome::Done;
        Ok(Extended { policy, outcome, until, receipt: Some(text), statuses })
    }

    async fn settle_opened(
        &self,
        now: Timestamp,
        policy: Arc<Revision>,
        opened: UnsealedReceipt,
        real: impl Fn(&Limit, Cost) -> Cost + Send,
    ) -> Result<Settled, RedeemError> {
        let UnsealedReceipt { receipt, expires_at } = opened;
        check_reserved(&receipt)?;
        if now >= expires_at {
            return Ok(Settled { policy, limits: Vec::new(), outcome: HoldOutcome::Expired });
        }
        let receipt = self.with_overridden_limits(now, receipt);
        let charges = receipt.settlements(real);
        let readings = self.apply_at_store(now, &charges).await?;
        self.carry_over(now, &receipt, &charges, &readings);
        let settled = |(limit, reading): (&Arc<Limit>, &Reading)| SettledLimit {
            refunded: reading.refunded,
            added: reading.added,
            status: LimitStatus::new(Arc::clone(limit), Cost::PEEK, reading),
        };
        let limits = receipt.limits().zip(&readings).map(settled).collect();
        let was_held = readings.iter().any(|reading| reading.admission == Admission::Now);
        let outcome = if was_held { HoldOutcome::Done } else { HoldOutcome::Unchanged };
        Ok(Settled { policy, limits, outcome })
    }

    /// Sends `charges`, the operations of a receipt, to the store that made the reservation, and
    /// returns their readings. An answer of a fallback is an error, because the fallback did not
    /// make the reservation.
    async fn apply_at_store(
        &self,
        now: Timestamp,
        charges: &[Charge<'_>],
    ) -> Result<Vec<Reading>, RedeemError> {
        if charges.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.store.apply(now, charges).await;
        self.notify_holds(charges, &answer);
        let readings = answer.map_err(RedeemError::Store)?;
        match readings.source() {
            DecisionSource::Fallback(error) | DecisionSource::Failure(error) => {
                Err(RedeemError::Store(error))
            }
            DecisionSource::Store | DecisionSource::DenyCache | DecisionSource::Overflow => {
                if readings.len() != charges.len() {
                    return Err(RedeemError::Store(StoreError::Corrupt));
                }
                Ok(readings.to_vec())
            }
        }
    }
}

const fn check_reserved(receipt: &Receipt) -> Result<(), RedeemError> {
    if receipt.is_reservation() {
        Ok(())
    } else {
        Err(RedeemError::Receipt(ReceiptError::NotReserved))
    }
}
