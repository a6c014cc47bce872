//! The error of a request limiter that cannot be built.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The reasons why [`build`](crate::RequestLimiterBuilder::build) failed: all mistakes at once.
///
/// ```
/// use tollgate::{Quota, RateLimiter, Rule};
///
/// let error = RateLimiter::builder()
///     .limit("burst", Quota::per_second(10).per("usr"))
///     .rule(Rule::path("/search/**").limits(["brust"]))
///     .build()
///     .unwrap_err();
/// let mistakes: Vec<_> = error.mistakes().collect();
/// assert_eq!(mistakes.len(), 2);
/// assert!(mistakes[0].starts_with("limit `burst`: there is no subject `usr`"));
/// assert!(mistakes[1].starts_with("rule 1: there is no limit `brust`"));
/// ```
#[derive(Clone, Debug)]
pub struct BuildError {
    mistakes: Vec<String>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl BuildError {
    pub(super) fn new(mistakes: Vec<String>) -> Self {
        Self { mistakes, source: None }
    }

    pub(super) fn store(error: Arc<dyn Error + Send + Sync>) -> Self {
        Self { mistakes: vec![format!("store: {error}")], source: Some(error) }
    }

    /// Returns the mistakes. Each message names the limit, rule or setting, the wrong input, and
    /// what to do.
    ///
    /// ```
    /// # use tollgate::RateLimiter;
    /// let error = RateLimiter::builder().build().unwrap_err();
    /// assert_eq!(error.mistakes().count(), 1);
    /// ```
    pub fn mistakes(&self) -> impl Iterator<Item = &str> {
        self.mistakes.iter().map(String::as_str)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mistakes.join("; "))
    }
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
