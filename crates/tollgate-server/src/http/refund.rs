//! Serves `POST /v1/refund` and `/v1/release`, which refund or release the charge of a receipt.

use tollgate::limiter::{RedeemError, Redeemed};
use tollgate::model::STATUSES;
use tollgate::model::Store;

use super::answer::refund_answer;
use super::app::App;
use super::json::{self, Fault};
use super::problem::{Kind, Problem};
use super::respond::Answer;
use super::wire::{RefundRequest, ReleaseRequest};

impl<S: Store> App<S> {
    /// Refunds the charge of a receipt, once. With the status of the response, refunds only the
    /// units that the policy refunds after such a response. Without a status, refunds all units.
    pub(super) async fn refund(&self, body: &[u8]) -> Answer {
        let RefundRequest { receipt, status } = json::read(body)?;
        let now = self.limiter.now();
        outcome(match status {
            None => self.limiter.redeem_at(now, &receipt).await,
            Some(status) if (STATUSES.0..=STATUSES.1).contains(&status) => {
                self.limiter.report_status_at(now, &receipt, status).await
            }
            Some(status) => {
                let message = format!("a status is {} to {}, not {status}", STATUSES.0, STATUSES.1);
                return Err(Fault::at("/status", message).into());
            }
        })
    }

    /// Releases the permits of a receipt and keeps its counted units. If the receipt belongs to a
    /// reservation, the reservation is released.
    pub(super) async fn release(&self, body: &[u8]) -> Answer {
        let ReleaseRequest { receipt } = json::read(body)?;
        outcome(self.limiter.release_at(self.limiter.now(), &receipt).await)
    }
}

fn outcome(redeemed: Result<Redeemed, RedeemError>) -> Answer {
    Ok(json::write(&refund_answer(&redeemed.map_err(unread)?))?)
}

/// Returns the problem for a receipt that could not be used.
pub(super) fn unread(error: RedeemError) -> Problem {
    match error {
        RedeemError::Receipt(error) => {
            Problem::new(Kind::InvalidReceipt, error.to_string()).at("/receipt")
        }
        RedeemError::Store(_) => Problem::new(Kind::StoreUnavailable, error.to_string()),
    }
}
