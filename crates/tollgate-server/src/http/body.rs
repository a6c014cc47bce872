//! The body of a request: JSON, bounded in bytes and in time.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use tokio::time::timeout;

use super::problem::{Kind, Problem};

/// The most bytes of a request's body.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// How long a body may take from its head to its last byte.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// The bytes of a body that says it is JSON.
pub(super) struct JsonBody(pub(super) Bytes);

impl<A: Sync> FromRequest<A> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _app: &A) -> Result<Self, Problem> {
        // A browser sends no other site's page's JSON without asking first.
        if !is_json(request.headers()) {
            let detail = "send the body with `content-type: application/json`";
            return Err(Problem::new(Kind::UnsupportedMediaType, detail));
        }
        let announced = request.headers().get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > MAX_BODY_BYTES as u64) {
            return Err(too_large());
        }
        collect(request.into_body()).await.map(Self)
    }
}

async fn collect(body: Body) -> Result<Bytes, Problem> {
    match timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        // Or its client went away, and reads no answer.
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            let detail = format!("the body did not come within {} s", BODY_TIMEOUT.as_secs());
            Err(Problem::new(Kind::SlowBody, detail))
        }
    }
}

fn too_large() -> Problem {
    Problem::new(Kind::BodyTooLarge, format!("a body has at most {MAX_BODY_BYTES} bytes"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(|value| value.to_str()) else {
        return false;
    };
    let media_type = value.split_once(';').map_or(value, |(media_type, _)| media_type);
    media_type.trim().eq_ignore_ascii_case("application/json")
}
