//! A stand-in that is chosen when the process starts.

use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};

use super::{FallbackStore, FixedAnswer, LocalShare};

/// One of the stand-ins, as an operator names them.
#[derive(Debug)]
pub enum FallbackChoice<S> {
    /// This node's share of every limit.
    Local(LocalShare<S>),
    /// The same word for everybody.
    FixedAnswer(FixedAnswer),
}

impl<S: Store> Store for FallbackChoice<S> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        match self {
            Self::Local(share) => share.apply(now, charges).await,
            Self::FixedAnswer(word) => word.apply(now, charges).await,
        }
    }
}

impl<S: Store> FallbackStore for FallbackChoice<S> {
    fn observe(&self, now: Timestamp, charges: &[Charge<'_>], readings: &Readings) {
        match self {
            Self::Local(share) => share.observe(now, charges, readings),
            Self::FixedAnswer(word) => word.observe(now, charges, readings),
        }
    }
}
