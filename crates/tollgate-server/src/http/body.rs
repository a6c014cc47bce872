//! Request bodies, limited in bytes and in time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use futures_util::FutureExt;
use hyper::body::Body;
use tokio::time::timeout;

use super::problem::{Kind, Problem};

/// The most bytes of a request body.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// The longest time from a request's head to the last byte of its body.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// The limits of a request body.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits {
    pub(super) bytes: usize,
    /// The time from the head of the request to the last byte of the body.
    pub(super) within: Duration,
}

impl BodyLimits {
    /// The limits for bodies that only name limits and subjects.
    pub(super) const SMALL: Self = Self { bytes: MAX_BODY_BYTES, within: BODY_TIMEOUT };
}

/// Checks that the media type is JSON. This check keeps pages of other sites out, because a browser
/// sends a JSON body of such a page only after a preflight request.
pub(super) fn expect_json(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.get(header::CONTENT_TYPE).is_some_and(|value| is_json(value.as_bytes())) {
        return Ok(());
    }
    let detail = "send the body with `content-type: application/json`";
    Err(Problem::new(Kind::UnsupportedMediaType, detail))
}

/// Reads a request body.
///
/// # Errors
/// A [`Problem`] if the body exceeds the bytes or the time of `bound`, or if the client sends no
/// complete body.
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
    // Most bodies arrive together with their heads, and need no timer.
    if let Some(collected) = collected.as_mut().now_or_never() {
        return collected;
    }
    timeout(bound.within, collected).await.unwrap_or_else(|_| {
        let detail = format!("the body did not arrive within {} s", bound.within.as_secs());
        Err(Problem::new(Kind::SlowBody, detail))
    })
}

async fn collect<B: Body<Data = Bytes>>(
    mut body: Pin<&mut B>,
    bound: BodyLimits,
) -> Result<Bytes, Problem> {
    let first = next_piece(body.as_mut()).await?.unwrap_or_default();
    if body.is_end_stream() && first.len() <= bound.bytes {
        return Ok(first);
    }
    let mut collected = Vec::from(first);
    while let Some(piece) = next_piece(body.as_mut()).await? {
        if piece.len() > bound.bytes.saturating_sub(collected.len()) {
            return Err(too_large(bound));
        }
        collected.extend_from_slice(&piece);
    }
    if collected.len() > bound.bytes { Err(too_large(bound)) } else { Ok(collected.into()) }
}

/// Returns the next frame of a body, if there is one.
pub(super) async fn next_piece<B: Body<Data = Bytes>>(
    mut body: Pin<&mut B>,
) -> Result<Option<Bytes>, Problem> {
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        // An error means that the client has disconnected, so it does not read the response.
        let frame = frame.map_err(|_| Problem::new(Kind::SlowBody, "the body ended early"))?;
        // Trailers are ignored.
        if let Ok(piece) = frame.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

fn too_large(bound: BodyLimits) -> Problem {
    Problem::new(
        Kind::BodyTooLarge,
        format!("the body is too large: at most {} bytes are allowed", bound.bytes),
    )
}

/// Returns whether the value of a `content-type` field is JSON.
pub(super) fn is_json(value: &[u8]) -> bool {
    let media_type = value.split(|byte| *byte == b';').next().unwrap_or_default();
    media_type.trim_ascii().eq_ignore_ascii_case(b"application/json")
}
