//! The body of a request, bounded in bytes and in time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use futures_util::FutureExt;
use hyper::body::Body;
use tokio::time::timeout;

use super::problem::{Kind, Problem};

/// The most bytes of a request's body.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// How long a body may take from its head to its last byte.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// How large a body may be, and how slow.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits {
    pub(super) bytes: usize,
    /// From the head of the request to the body's last byte.
    pub(super) within: Duration,
}

impl BodyLimits {
    /// Of what says which limits and subjects are meant.
    pub(super) const SMALL: Self = Self { bytes: MAX_BODY_BYTES, within: BODY_TIMEOUT };
}

/// Checks that a body says it is JSON: no browser sends another site's page's without asking first.
pub(super) fn expect_json(headers: &HeaderMap) -> Result<(), Problem> {
    if is_json(headers) {
        return Ok(());
    }
    let detail = "send the body with `content-type: application/json`";
    Err(Problem::new(Kind::UnsupportedMediaType, detail))
}

/// The bytes of a request's body.
pub(super) async fn read<B>(
    headers: &HeaderMap,
    body: B,
    bound: BodyLimits,
) -> Result<Bytes, Problem>
where
    B: Body<Data = Bytes>,
{
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > bound.bytes as u64) {
        return Err(too_large(bound));
    }
    let body = pin!(body);
    let mut collected = pin!(collect(body, bound));
    // Most bodies come with their heads, and need no clock.
    if let Some(collected) = collected.as_mut().now_or_never() {
        return collected;
    }
    timeout(bound.within, collected).await.unwrap_or_else(|_| {
        let detail = format!("the body did not come within {} s", bound.within.as_secs());
        Err(Problem::new(Kind::SlowBody, detail))
    })
}

async fn collect<B: Body<Data = Bytes>>(
    mut body: Pin<&mut B>,
    bound: BodyLimits,
) -> Result<Bytes, Problem> {
    let first = piece(body.as_mut()).await?.unwrap_or_default();
    if body.is_end_stream() && first.len() <= bound.bytes {
        return Ok(first);
    }
    let mut whole = Vec::from(first);
    while let Some(piece) = piece(body.as_mut()).await? {
        if piece.len() > bound.bytes.saturating_sub(whole.len()) {
            return Err(too_large(bound));
        }
        whole.extend_from_slice(&piece);
    }
    if whole.len() > bound.bytes { Err(too_large(bound)) } else { Ok(whole.into()) }
}

/// The next piece of a body, if there is one.
async fn piece<B: Body<Data = Bytes>>(mut body: Pin<&mut B>) -> Result<Option<Bytes>, Problem> {
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        // Its client went away, and reads no answer.
        let frame = frame.map_err(|_| Problem::new(Kind::SlowBody, "the body has no end"))?;
        // Trailers say nothing here.
        if let Ok(piece) = frame.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

fn too_large(bound: BodyLimits) -> Problem {
    Problem::new(Kind::BodyTooLarge, format!("this body has at most {} bytes", bound.bytes))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return false };
    let media_type = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    media_type.trim_ascii().eq_ignore_ascii_case(b"application/json")
}
