//! The decision on a request.

use std::time::Duration;

use http::HeaderMap;
use tollgate_core::LimitStatus;

use crate::headers;
use crate::limiter::Decision;

/// The decision of a [`RequestLimiter`](crate::RequestLimiter) on one request.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use http::{HeaderMap, Request};
/// use tollgate::{Quota, RateLimiter};
///
/// let limiter = RateLimiter::builder().limit("all", Quota::per_hour(1)).build()?;
/// let (parts, _body) = Request::get("/").body(())?.into_parts();
/// assert!(limiter.check(&parts, None).await.is_admitted());
/// let refused = limiter.check(&parts, None).await;
/// let mut headers = HeaderMap::new();
/// refused.write_headers(&mut headers);
/// assert_eq!(headers["retry-after"], "3600");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "a decision that nobody reads limits nothing"]
pub struct RequestDecision(Decision);

impl RequestDecision {
    pub(super) const fn new(decision: Decision) -> Self {
        Self(decision)
    }

    /// Returns whether the request is admitted.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder().limit("all", Quota::per_hour(1)).build().unwrap();
    /// let (parts, _body) = http::Request::new(()).into_parts();
    /// assert!(limiter.check(&parts, None).await.is_admitted());
    /// # });
    /// ```
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.0.is_admitted()
    }

    /// Returns the time after which the same request is admitted, if it was refused and a wait
    /// helps.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder().limit("all", Quota::per_hour(1)).build().unwrap();
    /// let (parts, _body) = http::Request::new(()).into_parts();
    /// assert_eq!(limiter.check(&parts, None).await.retry_after(), None);
    /// assert!(limiter.check(&parts, None).await.retry_after().is_some());
    /// # });
    /// ```
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.evaluation.retry_after().map(|wait| Duration::from_millis(wait.get()))
    }

    /// Returns the name of the limit that matters most: the limit with the longest wait, or, if no
    /// limit refused, the limit with the smallest share of its units left. Returns `None` if no
    /// limit applies.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder().limit("all", Quota::per_hour(1)).build().unwrap();
    /// let (parts, _body) = http::Request::new(()).into_parts();
    /// assert_eq!(limiter.check(&parts, None).await.limit_name(), Some("all"));
    /// # });
    /// ```
    #[must_use]
    pub fn limit_name(&self) -> Option<&str> {
        self.tightest().map(|status| status.limit.name())
    }

    /// Returns the units that remain of the limit that [`limit_name`](Self::limit_name) names.
    /// Returns `None` if no limit applies.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder().limit("all", Quota::per_hour(5)).build().unwrap();
    /// let (parts, _body) = http::Request::new(()).into_parts();
    /// assert_eq!(limiter.check(&parts, None).await.remaining(), Some(4));
    /// # });
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.tightest().map(|status| status.remaining)
    }

    /// Writes `ratelimit`, `ratelimit-policy` and, after a refusal, `retry-after`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder().limit("all", Quota::per_hour(5)).build().unwrap();
    /// let (parts, _body) = http::Request::new(()).into_parts();
    /// let mut response = http::Response::new(());
    /// limiter.check(&parts, None).await.write_headers(response.headers_mut());
    /// assert!(response.headers().contains_key("ratelimit"));
    /// # });
    /// ```
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        headers::write(&self.0.policy.answers().headers, &self.0.evaluation, headers);
    }

    fn tightest(&self) -> Option<&LimitStatus> {
        self.0.evaluation.tightest()
    }
}
