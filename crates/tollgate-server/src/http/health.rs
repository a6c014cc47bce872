//! `GET /healthz` and `GET /readyz`.

use super::app::App;
use super::problem::{Kind, Problem};
use super::respond::{self, Response};
use crate::shutdown::{Phase, Shutdown};

/// This process serves; restarting it would help nobody.
pub(super) fn live() -> Response {
    respond::plainly("ok\n")
}

/// Whether this node can take traffic.
pub(super) fn ready<S>(app: &App<S>, shutdown: Option<&Shutdown>) -> Result<Response, Problem> {
    if shutdown.is_some_and(|shutdown| shutdown.phase() > Phase::Serving) {
        return Err(Problem::new(Kind::NotReady, "this node is shutting down"));
    }
    match app.options.readiness.check() {
        Ok(()) => Ok(respond::plainly("ok\n")),
        Err(missing) => Err(Problem::new(Kind::NotReady, missing)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Extension;
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
