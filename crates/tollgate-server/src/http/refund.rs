//! `POST /v1/refund`.

use tollgate::core::Store;
use tollgate::limiter::RedeemError;

use super::app::App;
use super::json;
use super::problem::{Kind, Problem};
use super::wire::{RefundAnswer, RefundRequest};

impl<S: Store> App<S> {
    /// Gives back what a receipt proves, once.
    pub(super) async fn refund(&self, body: &[u8]) -> Result<RefundAnswer, Problem> {
        let RefundRequest { receipt } = json::read(body)?;
        match self.limiter.redeem_at(self.limiter.now(), &receipt).await {
            Ok(redeemed) => Ok(self.redeemed(&redeemed)),
            Err(RedeemError::Receipt(error)) => {
                Err(Problem::new(Kind::InvalidReceipt, error.to_string()).at("/receipt"))
            }
            Err(error @ RedeemError::Store(_)) => {
                Err(Problem::new(Kind::StoreUnavailable, error.to_string()))
            }
        }
    }
}
