//! Receipts that went out as text and come back.

use std::fmt;
use std::sync::Arc;

use tollgate_core::{
    Cost, DecisionSource, Limit, LimitStatus, Policy, Reading, Store, StoreError, Timestamp,
};

use super::Limiter;
use crate::receipt::{Receipt, ReceiptError, UnsealedReceipt};
use crate::revision::Revision;

/// What became of a receipt that came back.
#[derive(Clone, Debug)]
pub struct Redeemed {
    /// The policy by which it was read.
    pub policy: Arc<Revision>,
    /// Each limit that was charged and still is in the policy; none if the receipt has expired.
    pub limits: Vec<GivenBack>,
    /// What it did.
    pub outcome: Outcome,
}

/// What a receipt did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It gave back what was charged, or what was left of it.
    GivenBack,
    /// Nothing: it was given back before, its windows are over, or there is none of it.
    Unchanged,
    /// Nothing: all that it proves is over by now.
    Expired,
}

/// What one limit got back, and how it stands after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenBack {
    /// Whole units; none if its window is over, or it got them back before.
    pub units: u64,
    /// How it stands, for a cost of one unit.
    pub status: LimitStatus,
}

impl<S: Store> Limiter<S> {
    /// The text of a receipt for a charge that was made at `charged_at`: for clients that give it
    /// back later, on this node or on another with the same key. It can be shown often, and gives
    /// back once.
    #[must_use]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "whoever has the text has the receipt no more"
    )]
    pub fn seal(&self, receipt: Receipt, charged_at: Timestamp) -> String {
        receipt.seal(&self.key, charged_at)
    }

    /// Gives back what the `text` of a receipt proves. Shown again, it changes nothing more.
    ///
    /// # Errors
    /// [`RedeemError`]: it is no receipt, or the store has no answer; then it can be shown again.
    pub async fn redeem_at(&self, now: Timestamp, text: &str) -> Result<Redeemed, RedeemError> {
        let policy = self.policy();
        let opened = self.open(text, &policy)?;
        self.redeem(now, policy, opened).await
    }

    /// Ends the leases that the `text` of a receipt proves, and leaves what was counted: what an
    /// ordinary end of a request asks for. A reservation is released whole. Shown again, it changes nothing more.
    ///
    /// # Errors
    /// As [`redeem_at`](Self::redeem_at).
    pub async fn release_at(&self, now: Timestamp, text: &str) -> Result<Redeemed, RedeemError> {
        let policy = self.policy();
        let UnsealedReceipt { mut receipt, expires_at } = self.open(text, &policy)?;
        if !receipt.is_reservation() {
            (_, receipt) = receipt.split_permits();
        }
        self.redeem(now, policy, UnsealedReceipt { receipt, expires_at }).await
    }

    pub(super) fn open(&self, text: &str, policy: &Policy) -> Result<UnsealedReceipt, RedeemError> {
        Receipt::open(text, &self.key, policy).map_err(RedeemError::Receipt)
    }

    async fn redeem(
        &self,
        now: Timestamp,
        policy: Arc<Revision>,
        opened: UnsealedReceipt,
    ) -> Result<Redeemed, RedeemError> {
        let UnsealedReceipt { receipt, expires_at } = opened;
        if now >= expires_at {
            return Ok(Redeemed { policy, limits: Vec::new(), outcome: Outcome::Expired });
        }
        if receipt.is_empty() {
            return Ok(Redeemed { policy, limits: Vec::new(), outcome: Outcome::Unchanged });
        }
        let receipt = self.as_overridden(now, receipt);
        let refunds = receipt.refunds();
        let readings = self.store.apply(now, &refunds).await;
        self.tell_held(&refunds, &readings);
        let readings = readings.map_err(RedeemError::Store)?;
        self.lines.freed(&receipt);
        // What stands in for the store did not charge it.
        if let DecisionSource::Fallback(error) | DecisionSource::Failure(error) = readings.source()
        {
            return Err(RedeemError::Store(error));
        }
        let refunded = |(limit, reading): (&Arc<Limit>, &Reading)| GivenBack {
            units: reading.refunded,
            status: LimitStatus::new(Arc::clone(limit), Cost::PEEK, reading),
        };
        let limits: Vec<_> = receipt.limits().zip(readings.iter()).map(refunded).collect();
        let is_changed = limits.iter().any(|limit| limit.units > 0);
        let outcome = if is_changed { Outcome::GivenBack } else { Outcome::Unchanged };
        Ok(Redeemed { policy, limits, outcome })
    }
}

/// Why a receipt was not taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedeemError {
    /// The text is none.
    Receipt(ReceiptError),
    /// The store has no answer. The same receipt may be shown again.
    Store(StoreError),
}

impl fmt::Display for RedeemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Receipt(error) => error.fmt(f),
            Self::Store(error) => write!(f, "{error}; nothing is known to be given back"),
        }
    }
}

impl std::error::Error for RedeemError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Receipt(error) => Some(error),
            Self::Store(error) => Some(error),
        }
    }
}
