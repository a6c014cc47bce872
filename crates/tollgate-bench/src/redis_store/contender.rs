//! The contenders: the rate limiters that are compared, with their limits.

use std::fmt;
use std::future::Future;

use redis::RedisError;
use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::{Algorithm, Limit, LimitError, Millis, StoreError};

/// A rate limiter with its state in Redis. Many callers use it concurrently.
pub trait Contender: Send + Sync + 'static {
    /// Returns the name of the rate limiter in the report.
    fn name(&self) -> &'static str;

    /// Reads the clock, and charges one unit on each of the first `limits` limits of `subject`.
    /// Returns whether all these limits admitted the request.
    fn decide(
        &self,
        subject: u32,
        limits: usize,
    ) -> impl Future<Output = Result<bool, ContenderError>> + Send;

    /// Returns the number of calls that the contender has sent so far. Returns `None` if the
    /// contender sends one call for each decision.
    fn calls(&self) -> Option<u64>;
}

/// The name of each limit, and the length of its window in hours. The limits are fixed windows that
/// are longer than any run. The number of admitted requests therefore does not depend on the speed
/// of a contender.
pub const LIMITS: [(&str, u64); 4] = [("core", 24), ("burst", 48), ("daily", 72), ("weekly", 168)];

/// Returns the limits in [`LIMITS`] for Tollgate's store. Each has the quota `quota`.
///
/// # Errors
/// [`LimitError`] if the quota is invalid.
pub fn limits(quota: u64) -> Result<Vec<Limit>, LimitError> {
    let limit = |(name, hours): (&str, u64)| {
        let length = Millis::from_secs(hours * 3_600);
        let window = FixedWindow::new(quota, length, Anchor::FirstRequest)?;
        Limit::new(name, Algorithm::FixedWindow(window))
    };
    LIMITS.into_iter().map(limit).collect()
}

/// The reason why a contender made no decision. Such an error ends the run, because the times of a
/// run with errors have no meaning.
#[derive(Debug)]
pub enum ContenderError {
    /// The two-key script or redis-cell failed.
    Redis(RedisError),
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for ContenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redis(error) => write!(f, "the server: {error}"),
            Self::Store(error) => write!(f, "the store: {error}"),
        }
    }
}

impl std::error::Error for ContenderError {}
