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

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tollgate::Limiter;
    use tollgate::core::Policy;
    use tollgate::store::Memory;
    use tower::ServiceExt;

    use super::*;
    use crate::http::{HttpOptions, router};

    #[tokio::test]
    async fn a_node_that_drains_is_alive_and_not_ready() {
        let limiter = Arc::new(Limiter::new(Policy::default(), Memory::default()));
        let (phase, shutdown) = Shutdown::new();
        let router = router(limiter, HttpOptions::default()).layer(Extension(shutdown));
        let status = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            router.clone().oneshot(request).await.unwrap().status().as_u16()
        };
        assert_eq!((status("/readyz").await, status("/healthz").await), (200, 200));
        phase.send_replace(Phase::Draining);
        assert_eq!((status("/readyz").await, status("/healthz").await), (503, 200));
    }
}
