//! Answers as they go out.

use axum::body::Bytes;
use axum::http::{HeaderValue, Method, StatusCode, header};
use http_body_util::Full;

use super::problem::Problem;

/// An answer: it is known as a whole before its first byte goes out.
pub(super) type Response = axum::http::Response<Full<Bytes>>;

/// A document, or why there is none.
pub(super) type Answer = Result<Bytes, Problem>;

/// A body of `media_type`.
pub(super) fn of(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

/// The document, or the problem.
pub(super) fn with(answer: Answer) -> Response {
    answer.map_or_else(Problem::into_response, |document| {
        of(StatusCode::OK, "application/json", document)
    })
}

/// A word for supervisors and balancers.
pub(super) fn plainly(word: &'static str) -> Response {
    of(StatusCode::OK, "text/plain; charset=utf-8", word)
}

/// What `method` lets through: `HEAD` is answered as `GET`, without the body.
pub(super) fn to(method: &Method, mut response: Response) -> Response {
    use hyper::body::Body;
    if *method == Method::HEAD {
        let length = response.body().size_hint().exact().unwrap_or_default();
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        *response.body_mut() = Full::default();
    }
    response
}
