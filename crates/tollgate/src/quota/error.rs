//! The error for a quota that cannot be used.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tollgate_core::LimitError;

/// The reason why a limiter cannot be created with a quota.
///
/// ```
/// use tollgate::{Quota, RateLimiter};
///
/// let error = RateLimiter::try_per_key(Quota::per_second(0)).unwrap_err();
/// assert_eq!(error.to_string(), "limit `limit`: the quota must be at least 1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaError(Reason);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    Limit { name: Box<str>, error: LimitError },
    NotWhole { name: Box<str>, what: &'static str, given: Duration },
    Duplicate { name: Box<str> },
    None,
}

impl QuotaError {
    pub(super) fn limit(name: &str, error: LimitError) -> Self {
        Self(Reason::Limit { name: name.into(), error })
    }

    pub(super) fn not_whole(name: &str, what: &'static str, given: Duration) -> Self {
        Self(Reason::NotWhole { name: name.into(), what, given })
    }

    pub(super) fn twice(name: &str) -> Self {
        Self(Reason::Duplicate { name: name.into() })
    }

    pub(super) fn none() -> Self {
        Self(Reason::None)
    }
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Reason::Limit { name, error } => write!(f, "limit `{name}`: {error}"),
            Reason::NotWhole { name, what, given } => write!(
                f,
                "limit `{name}`: the {what} {given:?} must be a whole number of milliseconds"
            ),
            Reason::Duplicate { name } => {
                write!(f, "limit `{name}`: two quotas have this name; call `named` on one of them")
            }
            Reason::None => f.write_str("a limiter needs at least one quota"),
        }
    }
}

impl Error for QuotaError {}
