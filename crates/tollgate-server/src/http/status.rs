//! `GET /v1/status`: how what is behind a door stands, for those who run it.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;

use super::gate::bearer_token;
use super::problem::{Kind, Problem};
use crate::access::Access;

/// Tells how what is behind a door stands, as a JSON document.
#[derive(Clone)]
pub struct Status(Arc<dyn Fn() -> Value + Send + Sync>);

impl Status {
    /// As `tell` says whenever it is asked. It is asked on the request's way: it reads what is
    /// known and waits for nothing.
    pub fn new(tell: impl Fn() -> Value + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Status")
    }
}

/// The route of `status`, for whom `access` admits.
pub(super) fn route(status: Status, access: Access) -> Router {
    let tell = move |headers: HeaderMap| ready(answer(&status, &access, &headers));
    let wrong = async || Problem::new(Kind::MethodNotAllowed, "ask with GET").into_response();
    Router::new().route("/v1/status", get(tell).fallback(wrong))
}

fn answer(status: &Status, access: &Access, headers: &HeaderMap) -> Response {
    if !access.admits(bearer_token(headers)) {
        let detail = "send `authorization: Bearer TOKEN` with one of the door's tokens";
        return Problem::new(Kind::Unauthorized, detail).into_response();
    }
    let document = (status.0)().to_string();
    ([(header::CONTENT_TYPE, "application/json")], document).into_response()
}
