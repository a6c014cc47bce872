//! `GET /healthz` and `GET /readyz`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use tollgate::core::Store;

use super::app::App;
use super::problem::{Kind, Problem};
use crate::shutdown::{Phase, Shutdown};

/// This process serves; restarting it would help nobody.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Whether this node can take traffic.
pub(super) async fn ready<S: Store + 'static>(
    State(app): State<Arc<App<S>>>,
    shutdown: Option<Extension<Shutdown>>,
) -> Response {
    if shutdown.is_some_and(|Extension(shutdown)| shutdown.phase() > Phase::Serving) {
        return Problem::new(Kind::NotReady, "this node is shutting down").into_response();
    }
    match app.options.readiness.check() {
        Ok(()) => "ok\n".into_response(),
        Err(missing) => Problem::new(Kind::NotReady, missing).into_response(),
    }
}
