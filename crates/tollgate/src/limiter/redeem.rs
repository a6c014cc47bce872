//! Redeems receipts. A client that received a receipt as a sealed text presents this text later.

use std::fmt;
use std::sync::Arc;

use tollgate_core::{
    Cost, DecisionSource, Limit, LimitStatus, Policy, Reading, Store, StoreError, Timestamp,
};

use super::Limiter;
use crate::decision::Settlement;
use crate::receipt::{Receipt, ReceiptError, UnsealedReceipt};
use crate::revision::Revision;

/// The result of redeeming a receipt.
#[derive(Clone, Debug)]
pub struct Redeemed {
    /// The policy with which the receipt was read.
    pub policy: Arc<Revision>,
    /// The limits that the receipt charged and that the policy still has, each with its refund.
    /// Empty if the receipt has expired.
    pub limits: Vec<Refunded>,
    /// Whether this call refunded charges, and if not, why.
    pub outcome: Outcome,
}

/// Whether redeeming a receipt refunded charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The call refunded the charges of the receipt, except for units that had been refunded
    /// before.
    Refunded,
    /// The receipt has not expired, but the call refunded nothing: each charge that the call would
    /// refund was refunded before or is of a window that is over, or there is no such charge.
    Unchanged,
    /// The receipt has expired: no charge of it can be refunded any more. The call refunded nothing
    /// and did not call the store.
    Expired,
}

/// The refund on one limit, and the status of the limit after this refund.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refunded {
    /// The refunded units, as a whole number. 0 if the window has ended or the units were refunded
    /// before.
    pub units: u64,
    /// The status of the limit after the refund, as a request that costs one unit would receive it.
    pub status: LimitStatus,
}

impl<S: Store> Limiter<S> {
    /// Returns the sealed text of `receipt`. The charges of the receipt were made at `charged_at`.
    /// A client can present this text later for a refund, on this node or on another node with the
    /// same key. However often a client presents the text, each charge is refunded only once.
    #[must_use]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "a receipt that was sealed must not be refunded as well"
    )]
    pub fn seal(&self, receipt: Receipt, charged_at: Timestamp) -> String {
        receipt.seal(&self.key, charged_at)
    }

    /// Refunds the charges of the receipt with the sealed text `text`. Redeeming the same text
    /// again has no further effect.
    ///
    /// # Errors
    /// [`RedeemError`] if the text is not a valid receipt, or if the store does not answer. In the
    /// second case the receipt can be redeemed again.
    pub async fn redeem_at(&self, now: Timestamp, text: &str) -> Result<Redeemed, RedeemError> {
        let policy = self.policy();
        let opened = self.open(text, &policy)?;
        self.redeem(now, policy, opened).await
    }

    /// Reports that the response to the request had the status code `status`. Refunds those charges
    /// of the receipt `text` that the policy refunds after such a response. The limit sets the
    /// status codes that are refunded. If the limit sets none, the status codes of the rule apply.
    /// If the rule sets none either, the status codes of the policy apply. The request has ended,
    /// so its permits are released. If this call refunds a limit, a later refund of the same
    /// receipt has no further effect on the limit.
    ///
    /// # Errors
    /// As [`redeem_at`](Self::redeem_at). The receipt of a reservation is an error too.
    pub async fn report_status_at(
        &self,
        now: Timestamp,
        text: &str,
        status: u16,
    ) -> Result<Redeemed, RedeemError> {
        let policy = self.policy();
        let UnsealedReceipt { receipt, expires_at } = self.open(text, &policy)?;
        if receipt.is_reservation() {
            return Err(RedeemError::Receipt(ReceiptError::Reserved));
        }
        let is_free = policy.answers().refund_statuses.contains(&status);
        let receipt = receipt.refundable(Settlement::Status { status, is_free });
        self.redeem(now, policy, UnsealedReceipt { receipt, expires_at }).await
    }

    /// Releases the permits of the receipt with the sealed text `text`. Units of other limits
    /// remain charged, as at the ordinary end of a request. If the receipt is of a reservation, the
    /// whole reservation is released. Releasing the same text again has no further effect.
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
        let receipt = self.with_overridden_limits(now, receipt);
        let refunds = receipt.refunds();
        let readings = self.store.apply(now, &refunds).await;
        self.notify_holds(&refunds, &readings);
        let readings = readings.map_err(RedeemError::Store)?;
        self.queues.slots_freed(&receipt);
        // A fallback did not make this charge, so its answer is an error.
        if let DecisionSource::Fallback(error) | DecisionSource::Failure(error) = readings.source()
        {
            return Err(RedeemError::Store(error));
        }
        let refunded = |(limit, reading): (&Arc<Limit>, &Reading)| Refunded {
            units: reading.refunded,
            status: LimitStatus::new(Arc::clone(limit), Cost::PEEK, reading),
        };
        let limits: Vec<_> = receipt.limits().zip(readings.iter()).map(refunded).collect();
        let is_changed = limits.iter().any(|limit| limit.units > 0);
        let outcome = if is_changed { Outcome::Refunded } else { Outcome::Unchanged };
        Ok(Redeemed { policy, limits, outcome })
    }
}

/// The reason why a client's receipt was not redeemed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedeemError {
    /// The text is not a valid receipt.
    Receipt(ReceiptError),
    /// The store did not answer. The caller can redeem the receipt again.
    Store(StoreError),
}

impl fmt::Display for RedeemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Receipt(error) => error.fmt(f),
            Self::Store(error) => {
                write!(f, "{error}; it is unknown whether the receipt was refunded")
            }
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
