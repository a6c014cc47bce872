//! A fallback that is selected when the process starts.

use tollgate_core::{Charge, Limit, Readings, Store, StoreError, Subject, Timestamp};

use super::{FallbackStore, FixedAnswer, LocalShare};

/// One of the fallbacks that an operator can select with `on_failure`.
#[derive(Debug)]
pub enum FallbackChoice<S> {
    /// The fallback decides by this node's share of every limit.
    Local(LocalShare<S>),
    /// The fallback makes the same decision for every client.
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

    async fn used(&self, now: Timestamp, limit: &Limit, subject: &Subject) -> u64 {
        match self {
            Self::Local(share) => share.used(now, limit, subject).await,
            Self::FixedAnswer(word) => word.used(now, limit, subject).await,
        }
    }
}
