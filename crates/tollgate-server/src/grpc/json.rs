//! Envoy's rate limit service in JSON, for callers without gRPC: `POST /json`, as in the reference
//! server.

use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::json;
use tollgate::model::Store;
use tollgate::{Limiter, problem};
use tonic::Code;

use super::proto::{self, FILES, RateLimitRequest, RateLimitResponse};
use super::service::RateLimits;
use super::unary::MAX_MESSAGE_BYTES;

/// Returns the route `POST /json`. The route reads a `RateLimitRequest` in the JSON form of
/// protocol buffers, and answers with a `RateLimitResponse`. The status is 200 if the request may
/// pass, and 429 if the request is over its limit. Status 400 means that the request is invalid.
/// Status 503 means that the store did not answer and `on_failure` of the domain is `deny`.
///
/// The route does not check tokens, so the router into which it is merged has to control the
/// access. That router may have any state type.
pub fn json_route<S, T>(limiter: Arc<Limiter<S>>) -> axum::Router<T>
where
    S: Store + 'static,
    T: Clone + Send + Sync + 'static,
{
    axum::Router::new()
        .route("/json", post(should_rate_limit::<S>))
        .layer(DefaultBodyLimit::max(MAX_MESSAGE_BYTES))
        .with_state(limiter)
}

async fn should_rate_limit<S: Store + 'static>(
    State(limiter): State<Arc<Limiter<S>>>,
    body: Bytes,
) -> Response {
    let Some(messages) = &*MESSAGES else {
        return error_response(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the protocol's descriptors cannot be decoded",
        );
    };
    let request = match messages.read(&body) {
        Ok(request) => request,
        Err(error) => return error_response(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let answer = match RateLimits(limiter).answer(&request).await {
        Ok(answer) => answer,
        Err(status) if status.code() == Code::InvalidArgument => {
            return error_response(StatusCode::BAD_REQUEST, status.message());
        }
        Err(status) => return error_response(StatusCode::SERVICE_UNAVAILABLE, status.message()),
    };
    let status = match answer.overall_code() {
        proto::Code::OverLimit => StatusCode::TOO_MANY_REQUESTS,
        proto::Code::Ok | proto::Code::Unknown => StatusCode::OK,
    };
    match messages.write(&answer) {
        Ok(body) => (status, [(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => error_response(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn error_response(status: StatusCode, detail: &str) -> Response {
    let title = status.canonical_reason().unwrap_or_default();
    let body = json!({
        "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail,
    });
    (status, [(CONTENT_TYPE, problem::CONTENT_TYPE)], body.to_string()).into_response()
}

/// The protobuf descriptors of the request and the response, which are needed to convert both from
/// and to JSON.
struct Messages {
    request: MessageDescriptor,
    response: MessageDescriptor,
}

static MESSAGES: LazyLock<Option<Messages>> = LazyLock::new(|| {
    let pool = DescriptorPool::decode(FILES).ok()?;
    let named =
        |name: &str| pool.get_message_by_name(&format!("envoy.service.ratelimit.v3.{name}"));
    Some(Messages { request: named("RateLimitRequest")?, response: named("RateLimitResponse")? })
});

impl Messages {
    fn read(&self, body: &[u8]) -> Result<RateLimitRequest, serde_json::Error> {
        let mut text = serde_json::Deserializer::from_slice(body);
        let message = DynamicMessage::deserialize(self.request.clone(), &mut text)?;
        text.end()?;
        message.transcode_to().map_err(serde::de::Error::custom)
    }

    fn write(&self, answer: &RateLimitResponse) -> Result<Vec<u8>, serde_json::Error> {
        let mut message = DynamicMessage::new(self.response.clone());
        message.transcode_from(answer).map_err(serde::ser::Error::custom)?;
        serde_json::to_vec(&message)
    }
}
