//! Responses of the listener.

use axum::body::Bytes;
use axum::http::{HeaderValue, Method, StatusCode, header};
use http_body_util::Full;

use super::problem::Problem;

/// A response with a body that is complete before its first byte is sent.
pub(super) type Response = axum::http::Response<Full<Bytes>>;

/// A JSON document, or a problem.
pub(super) type Answer = Result<Bytes, Problem>;

/// Creates a response with a body of `media_type`.
pub(super) fn of(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

/// Creates a response with the document or the problem.
pub(super) fn with(answer: Answer) -> Response {
    answer.map_or_else(Problem::into_response, |document| {
        of(StatusCode::OK, "application/json", document)
    })
}

/// Creates a plain text response, for supervisors and load balancers.
pub(super) fn plainly(word: &'static str) -> Response {
    of(StatusCode::OK, "text/plain; charset=utf-8", word)
}

/// Adapts a response to `method`: the response to `HEAD` is that to `GET` without the body.
pub(super) fn to(method: &Method, mut response: Response) -> Response {
    use hyper::body::Body;
    if *method == Method::HEAD {
        let length = response.body().size_hint().exact().unwrap_or_default();
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        *response.body_mut() = Full::default();
    }
    response
}
