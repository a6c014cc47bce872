//! Ends reservations: units that are held until the real cost of a request is known.

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
    /// The reservation was open, and is settled or extended now.
    Done,
    /// Nothing changed: the reservation was settled before, or has expired.
    Unchanged,
    /// Nothing changed: the receipt has expired.
    Expired,
}

/// The result of a settlement.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The policy that the receipt was read with.
    pub policy: Arc<Revision>,
    /// Each reserved limit that the policy still has; empty if the receipt has expired.
    pub limits: Vec<SettledLimit>,
    /// Whether a reservation was settled.
    pub outcome: HoldOutcome,
}

/// The settlement of one limit, and the status of the limit afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledLimit {
    /// Whole units that were refunded; 0 if the window is over.
    pub refunded: u64,
    /// Whole units that were charged beyond the reservation, as far as capacity and overdraft allow.
    pub added: u64,
    /// The status, for a cost of one unit.
    pub status: LimitStatus,
}

/// The result of an extension.
#[derive(Clone, Debug)]
pub struct Extended {
    /// The policy that the receipt was read with.
    pub policy: Arc<Revision>,
    /// Whether every limit still held the reservation.
    pub outcome: HoldOutcome,
    /// The time at which the first limit releases the reservation, if all limits held it.
    pub until: Timestamp,
    /// The text to use from now on. The old text is valid until its own end only.
    pub receipt: Option<String>,
    /// The status of each limit.
    pub statuses: Vec<LimitStatus>,
}

impl<S: Store> Limiter<S> {
    /// Replaces the reserved amounts of `receipt` by the real cost. `real` returns the cost for a
    /// limit and its reserved amount: the rest is refunded, and an excess is charged now. What the
    /// limit has no room for is carried over, as [`settle_metered_at`](Self::settle_metered_at)
    /// does.
    ///
    /// # Errors
    /// [`RedeemError`] if the receipt is not of a reservation, or if the store does not answer; the
    /// reservation then expires as before.
    pub async fn settle(
        &self,
        receipt: Receipt,
        real: impl Fn(&Limit, Cost) -> Cost + Send,
    ) -> Result<Settled, RedeemError> {
        let opened = UnsealedReceipt { expires_at: Timestamp::from_millis(u64::MAX), receipt };
        self.settle_opened(self.now(), self.policy(), opened, real).await
    }

    /// Settles the `text` of a receipt like [`settle`](Self::settle), at the time `now`. Settling
    /// again has no further effect.
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

    /// Extends the reservation of the `text` of a receipt until `hold_for` after `now`, or as far
    /// as each limit allows. Never shortens it.
    ///
    /// # Errors
    /// [`RedeemError`] if the receipt is not of a reservation, or if the store does not answer; the
    /// text can then be used again.
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
        // A limit that already holds the reservation until a later time keeps that end.
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

    /// Returns the readings of the store that made the reservation. An answer of the fallback is an
    /// error, because the fallback did not make the reservation.
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
