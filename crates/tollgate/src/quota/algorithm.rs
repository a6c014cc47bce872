//! Converts a quota to the algorithm of its limit.

use std::time::Duration;

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate_core::{Algorithm, Millis};

use super::error::QuotaError;

/// The length of the blocks in which the units of a [sliding](super::Quota::sliding) window expire.
/// A finer precision needs more memory for each key.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Precision;
///
/// assert_eq!(Precision::minutes(1), Precision::new(Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision(Duration);

impl Precision {
    /// Creates a precision with blocks of the length `step`, a whole number of milliseconds.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Precision, Quota};
    /// let quota = Quota::per_second(100).sliding(Precision::new(Duration::from_millis(100)));
    /// # let _ = quota;
    /// ```
    #[must_use]
    pub const fn new(step: Duration) -> Self {
        Self(step)
    }

    /// Creates a precision of `seconds`.
    ///
    /// ```
    /// # use tollgate::{Precision, Quota};
    /// let quota = Quota::per_minute(100).sliding(Precision::seconds(5));
    /// # let _ = quota;
    /// ```
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Creates a precision of `minutes`.
    ///
    /// ```
    /// # use tollgate::{Precision, Quota};
    /// let quota = Quota::per_hour(1_000).sliding(Precision::minutes(1));
    /// # let _ = quota;
    /// ```
    #[must_use]
    pub const fn minutes(minutes: u64) -> Self {
        Self(Duration::from_secs(minutes.saturating_mul(60)))
    }
}

/// The algorithm that counts a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    TokenBucket { burst: Option<u64> },
    FixedWindow,
    CalendarWindow,
    Sliding(Precision),
    TwoBucket,
    SlidingLog,
    Concurrency,
}

impl Counting {
    /// Returns the algorithm that counts `units` per `window` for the limit `name`.
    pub(super) fn algorithm(
        self,
        units: u64,
        window: Duration,
        name: &str,
    ) -> Result<Algorithm, QuotaError> {
        let window = millis("window", window, name)?;
        let algorithm = match self {
            Self::TokenBucket { burst } => {
                TokenBucket::new(units, window, burst.unwrap_or(units)).map(Algorithm::TokenBucket)
            }
            Self::FixedWindow => {
                FixedWindow::new(units, window, Anchor::FirstRequest).map(Algorithm::FixedWindow)
            }
            Self::CalendarWindow => {
                FixedWindow::new(units, window, Anchor::Calendar).map(Algorithm::FixedWindow)
            }
            Self::Sliding(Precision(step)) => {
                let step = millis("precision", step, name)?;
                SlidingWindow::new(units, window, step).map(Algorithm::SlidingWindow)
            }
            Self::TwoBucket => TwoBucket::new(units, window).map(Algorithm::TwoBucket),
            Self::SlidingLog => SlidingLog::new(units, window).map(Algorithm::SlidingLog),
            Self::Concurrency => Concurrency::new(units, window).map(Algorithm::Concurrency),
        };
        algorithm.map_err(|error| QuotaError::limit(name, error))
    }
}

/// Converts the duration `given` to milliseconds. In the error for a fraction of a millisecond,
/// `what` names the setting and `name` names the limit.
fn millis(what: &'static str, given: Duration, name: &str) -> Result<Millis, QuotaError> {
    let whole = u64::try_from(given.as_millis()).ok().map(Millis::new);
    match whole {
        Some(whole) if Duration::from_millis(whole.get()) == given => Ok(whole),
        _ => Err(QuotaError::not_whole(name, what, given)),
    }
}
