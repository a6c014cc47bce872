//! Who is compared, and what all of them limit.

use std::fmt;
use std::future::Future;

use redis::RedisError;
use tollgate::core::algo::{Anchor, FixedWindow};
use tollgate::core::{Algorithm, Limit, LimitError, Millis, StoreError};

/// A rate limiter with its state in Redis, asked by many callers at once.
pub trait Contender: Send + Sync + 'static {
    /// What the report calls it.
    fn name(&self) -> &'static str;

    /// Reads the clock and charges one unit on the first `limits` limits of `subject`; answers
    /// whether all of them admitted it.
    fn decide(
        &self,
        subject: u32,
        limits: usize,
    ) -> impl Future<Output = Result<bool, ContenderError>> + Send;

    /// How many calls it has sent, where that is not one for each decision.
    fn calls(&self) -> Option<u64>;
}

/// The name and the hours of each limit: fixed windows that outlast any run, so that all
/// contenders admit the same however long they take.
pub const LIMITS: [(&str, u64); 4] = [("core", 24), ("burst", 48), ("daily", 72), ("weekly", 168)];

/// [`LIMITS`] with `quota` units each, as the store takes them.
///
/// # Errors
/// [`LimitError`] if there is no such quota.
pub fn limits(quota: u64) -> Result<Vec<Limit>, LimitError> {
    let limit = |(name, hours): (&str, u64)| {
        let length = Millis::from_secs(hours * 3_600);
        let window = FixedWindow::new(quota, length, Anchor::FirstRequest)?;
        Limit::new(name, Algorithm::FixedWindow(window))
    };
    LIMITS.into_iter().map(limit).collect()
}

/// Why a contender did not decide. It ends the run: a benchmark of errors is none.
#[derive(Debug)]
pub enum ContenderError {
    /// The two-key script failed.
    Redis(RedisError),
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for ContenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redis(error) => write!(f, "the two-key script: {error}"),
            Self::Store(error) => write!(f, "the store: {error}"),
        }
    }
}

impl std::error::Error for ContenderError {}
