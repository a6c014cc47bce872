use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use tollgate_http::Violation;

use crate::upload::UploadFault;

/// A response with problem details (RFC 9457) that the proxy itself creates. It contains nothing
/// about the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// The explanation for the client: plain ASCII without quotes or backslashes, so the text needs
    /// no escaping in JSON.
    pub(crate) detail: &'static str,
}

impl Problem {
    pub(crate) const fn new(status: StatusCode, detail: &'static str) -> Self {
        Self { status, detail }
    }

    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let json = format!(
            r#"{{"type":"about:blank","title":"{title}","status":{},"detail":"{}"}}"#,
            self.status.as_u16(),
            self.detail,
        );
        let mut response = Response::new(Full::from(json));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl From<Violation> for Problem {
    fn from(violation: Violation) -> Self {
        Self::new(violation.status(), violation.detail())
    }
}

impl From<UploadFault> for Problem {
    fn from(fault: UploadFault) -> Self {
        match fault {
            UploadFault::TooLarge => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The request body is larger than this server accepts.",
            ),
            UploadFault::Stalled => {
                Self::new(StatusCode::REQUEST_TIMEOUT, "The request body did not arrive in time.")
            }
            UploadFault::TooSlow => {
                Self::new(StatusCode::REQUEST_TIMEOUT, "The request body arrived too slowly.")
            }
            UploadFault::Malformed(violation) => violation.into(),
            UploadFault::Broken => {
                Self::new(StatusCode::BAD_REQUEST, "The request body ended early.")
            }
        }
    }
}
