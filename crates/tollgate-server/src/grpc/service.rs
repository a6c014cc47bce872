//! The service: from a request's message to its answer's.

use std::sync::Arc;

use tollgate::Limiter;
use tollgate::core::Store;
use tonic::Status;

use super::answer::answer;
use super::evaluation::DescriptorEvaluation;
use super::proto::{RateLimitRequest, RateLimitResponse};
use super::request::ParsedRequest;

/// The largest message that is read, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// The rate limit service over a limiter.
pub(super) struct RateLimits<S>(pub(super) Arc<Limiter<S>>);

impl<S: Store> RateLimits<S> {
    /// The answer to `request`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a request that makes no sense, and `UNAVAILABLE` where the store had
    /// no answer and the domain denies then: what Envoy makes of errors is its configuration's.
    pub(super) async fn answer(
        &self,
        request: &RateLimitRequest,
    ) -> Result<RateLimitResponse, Status> {
        let parsed = ParsedRequest::read(request)?;
        let policy = self.0.policy();
        let evaluation = DescriptorEvaluation::evaluate(&self.0, &policy, &parsed).await;
        let evaluation = evaluation.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(answer(request, &evaluation, policy.answers()))
    }
}
