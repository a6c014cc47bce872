//! The rate limit service: from a request message to a response message.

use std::sync::Arc;

use tollgate::Limiter;
use tollgate::model::Store;
use tonic::Status;

use super::answer::answer;
use super::evaluation::DescriptorEvaluation;
use super::proto::{RateLimitRequest, RateLimitResponse};
use super::request::ParsedRequest;

/// The rate limit service over a limiter.
pub(super) struct RateLimits<S>(pub(super) Arc<Limiter<S>>);

impl<S: Store + 'static> RateLimits<S> {
    /// Returns the response to `request`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an invalid request, and `UNAVAILABLE` if the store did not answer and
    /// `on_failure` of the domain is `deny`. Envoy's configuration defines whether it admits a
    /// request after an error.
    pub(super) async fn answer(
        &self,
        request: &RateLimitRequest,
    ) -> Result<RateLimitResponse, Status> {
        let parsed = ParsedRequest::read(request)?;
        let policy = self.0.policy();
        let evaluation = DescriptorEvaluation::evaluate(&self.0, &policy, &parsed).await;
        let evaluation = evaluation.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(answer(request, &evaluation, &policy))
    }
}
