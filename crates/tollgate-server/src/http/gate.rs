//! Who may ask.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tollgate::core::Store;

use super::app::App;
use super::problem::{Kind, Problem};

/// Lets only those pass who may ask for verdicts, or as administrators for more.
pub(super) async fn admit<S: Store + 'static>(
    State(app): State<Arc<App<S>>>,
    request: Request,
    next: Next,
) -> Response {
    let token = bearer_token(request.headers());
    let is_admin = || app.options.admin.as_ref().is_some_and(|admin| admin.admits(token));
    if app.options.access.admits(token) || is_admin() {
        return next.run(request).await;
    }
    let detail = match token {
        Some(_) => "this token opens nothing here",
        None => "send `authorization: Bearer TOKEN` with one of the door's tokens",
    };
    Problem::new(Kind::Unauthorized, detail).into_response()
}

/// The token of `Authorization: Bearer TOKEN`; none if there are several fields.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let (line, None) = (lines.next()?.as_bytes(), lines.next()) else { return None };
    let (scheme, token) = line.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}
