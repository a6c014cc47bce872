//! The decision on a request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use tollgate_core::{LimitStatus, Store};

use crate::headers;
use crate::limiter::{Decision, Limiter};
use crate::store::Memory;
use crate::tower::{Admitted, InFlight};

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
///
/// # The end of a request
///
/// Call [`finish`](Self::finish) when the response is known, and keep the decision until the
/// response has ended. Dropping the decision releases the permits of concurrency limits. A decision
/// that is dropped without a call of `finish` makes the charges of rules that charge on completion,
/// and refunds nothing: the service may have worked for the request.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use http::{Request, Response};
/// use tollgate::{Quota, RateLimiter};
///
/// let limiter = RateLimiter::builder().limit("exports", Quota::concurrent(1)).build()?;
/// let (parts, _body) = Request::get("/export").body(())?.into_parts();
/// let mut running = limiter.check(&parts, None).await;
/// assert!(running.is_admitted());
/// assert!(!limiter.check(&parts, None).await.is_admitted());
///
/// let mut response = Response::new("the response of your service");
/// running.finish(response.status());
/// running.write_headers(response.headers_mut());
/// // Send the response here. The request holds its permit until the decision is dropped.
/// drop(running);
/// assert!(limiter.check(&parts, None).await.is_admitted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[must_use = "a request holds its permits only until its decision is dropped"]
pub struct RequestDecision<S: Store + 'static = Memory> {
    request: Admitted<S>,
    /// Whether the charges of the request are final: the request was refused, or its response is
    /// known.
    is_final: bool,
}

impl<S: Store + 'static> RequestDecision<S> {
    pub(super) fn new(limiter: &Arc<Limiter<S>>, mut decision: Decision) -> Self {
        let is_final = !decision.is_admitted();
        if is_final {
            // The service does not work for a refused request.
            decision.pending = None;
        }
        Self { request: Admitted::new(limiter, decision, InFlight::nothing()), is_final }
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
        self.decision().is_admitted()
    }

    /// Settles the charges by the `status` of the response: makes the charges of rules that charge
    /// on completion, and refunds the charges that the policy makes free for this status. Call this
    /// function before [`write_headers`](Self::write_headers), so the header fields include the
    /// result.
    ///
    /// The request keeps its permits of concurrency limits until the decision is dropped. A cost
    /// that the policy measures in time is settled then. For other costs that the policy reads
    /// from the response, the reserved units are charged; [`RateLimitLayer`](crate::RateLimitLayer)
    /// reads such costs.
    ///
    /// The store calls run in the background, in the runtime of
    /// [`RequestLimiter::check`](crate::RequestLimiter::check) if the caller is in none. Only the
    /// first call has an effect, and none if the request was refused.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use http::StatusCode;
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::builder().limit("all", Quota::concurrent(1)).build().unwrap();
    /// let (parts, _body) = http::Request::new(()).into_parts();
    /// for _ in 0..2 {
    ///     let mut decision = limiter.check(&parts, None).await;
    ///     assert!(decision.is_admitted());
    ///     decision.finish(StatusCode::OK);
    /// }
    /// # });
    /// ```
    pub fn finish(&mut self, status: StatusCode) {
        if !self.is_final {
            self.is_final = true;
            self.request.settle(self.decision().settlement(status.as_u16()));
        }
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
        self.decision().evaluation.retry_after().map(|wait| Duration::from_millis(wait.get()))
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
        let decision = self.decision();
        headers::write(&decision.policy.answers().headers, &decision.evaluation, headers);
    }

    fn tightest(&self) -> Option<&LimitStatus> {
        self.decision().evaluation.tightest()
    }

    const fn decision(&self) -> &Decision {
        self.request.decision()
    }
}

impl<S: Store + 'static> fmt::Debug for RequestDecision<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestDecision").field("decision", self.decision()).finish_non_exhaustive()
    }
}
