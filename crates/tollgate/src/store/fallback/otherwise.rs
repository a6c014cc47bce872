//! A stand-in that is chosen when the process starts.

use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

use super::{Always, Share, StandIn};

/// One of the stand-ins, as an operator names them.
#[derive(Debug)]
pub enum Otherwise<S> {
    /// This node's share of every limit.
    Local(Share<S>),
    /// The same word for everybody.
    Always(Always),
}

impl<S: Store> Store for Otherwise<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        match self {
            Self::Local(share) => share.apply(now, charges).await,
            Self::Always(word) => word.apply(now, charges).await,
        }
    }
}

impl<S: Store> StandIn for Otherwise<S> {
    fn saw(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
        match self {
            Self::Local(share) => share.saw(now, charges, readings),
            Self::Always(word) => word.saw(now, charges, readings),
        }
    }
}
