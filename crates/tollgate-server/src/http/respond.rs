//! The HTTP responses of the listener.

use axum::body::Bytes;
use axum::http::{HeaderValue, Method, StatusCode, header};
use http_body_util::Full;
use tollgate::problem::CONTENT_TYPE;

use super::problem::Problem;

/// The `retry-after` in seconds that is sent with problems that may be temporary.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// A response with a body that is complete before its first byte is sent.
pub(super) type Response = axum::http::Response<Full<Bytes>>;

/// The result of a route: a JSON document, or a problem.
pub(super) type Answer = Result<Bytes, Problem>;

/// Creates a response with a body of `media_type`.
pub(super) fn of(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

/// Creates a response with the problem.
pub(super) fn refuse(problem: &Problem) -> Response {
    let mut response = of(problem.status(), CONTENT_TYPE, problem.body());
    let headers = response.headers_mut();
    match problem.status() {
        StatusCode::SERVICE_UNAVAILABLE => {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        StatusCode::UNAUTHORIZED => {
            let challenge = HeaderValue::from_static("Bearer realm=\"tollgate\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        _ => {}
    }
    response
}

/// Creates a response with the document or the problem.
pub(super) fn with(answer: Answer) -> Response {
    answer.map_or_else(
        |problem| refuse(&problem),
        |document| of(StatusCode::OK, "application/json", document),
    )
}

/// Creates a plain text response, for supervisors and load balancers.
pub(super) fn plainly(word: &'static str) -> Response {
    of(StatusCode::OK, "text/plain; charset=utf-8", word)
}

/// Adapts a response to `method`: the response to `HEAD` is the response to `GET` without the body.
pub(super) fn to(method: &Method, mut response: Response) -> Response {
    use hyper::body::Body;
    if *method == Method::HEAD {
        let length = response.body().size_hint().exact().unwrap_or_default();
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        *response.body_mut() = Full::default();
    }
    response
}
