//! The checks of the head of an upstream's response.

use http::{HeaderMap, Method, Response, StatusCode, header};
use http_body::Body;

use crate::upgrade::Upgrade;

/// The properties of a request that determine which responses to it are valid.
#[derive(Debug)]
pub(crate) struct ExpectedResponse {
    pub(crate) method: Method,
    /// The protocol to which the request asks to upgrade its connection.
    pub(crate) upgrade: Option<Upgrade>,
    /// The largest number of bytes of the response's header fields.
    pub(crate) header_bytes: usize,
}

impl ExpectedResponse {
    /// Returns whether `response` is consistent in itself and with its request. A response that
    /// switches to another protocol is valid only if the request asked for this protocol.
    pub(crate) fn includes<B: Body>(&self, response: &Response<B>) -> bool {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let upgrade = self.upgrade.as_ref();
            return upgrade.is_some_and(|upgrade| upgrade.is_accepted(response.headers()));
        }
        section_bytes(response.headers()) <= self.header_bytes
            && !is_inconsistent(response, &self.method)
    }
}

/// Returns the number of bytes of the header fields on the wire. The limit on response heads needs
/// this exact number, because the HTTP client itself only limits the size of its read buffer.
fn section_bytes(headers: &HeaderMap) -> usize {
    const AROUND: usize = ": \r\n".len();
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + AROUND).sum()
}

/// Returns whether the framing of a response is contradictory: a length together with a chunked
/// coding, or two lengths.
fn is_inconsistent<B: Body>(response: &Response<B>, method: &Method) -> bool {
    let headers = response.headers();
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else { return false };
    if lengths.next().is_some() || headers.contains_key(header::TRANSFER_ENCODING) {
        return true;
    }
    let bodiless = method == Method::HEAD
        || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let stated = length.to_str().ok().and_then(|length| length.parse::<u64>().ok());
    !bodiless && stated != response.body().size_hint().exact()
}
