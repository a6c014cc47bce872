//! Serves `GET /healthz` and `GET /readyz`: whether the process serves requests, and whether the
//! node can accept traffic.

use axum::http::{HeaderName, HeaderValue};
use tollgate::model::Store;

use super::app::App;
use super::problem::{Kind, Problem};
use super::respond::{self, Response};
use tollgate_http::{Phase, Shutdown};

/// The header field with the version of the current policy.
const POLICY: HeaderName = HeaderName::from_static("x-tollgate-policy");

/// Returns a response that shows that this process serves requests, so a restart would not help.
pub(super) fn live<S: Store>(app: &App<S>) -> Response {
    well(app)
}

/// Reports whether this node can accept traffic.
pub(super) fn ready<S: Store>(
    app: &App<S>,
    shutdown: Option<&Shutdown>,
) -> Result<Response, Problem> {
    if shutdown.is_some_and(|shutdown| shutdown.phase() > Phase::Serving) {
        return Err(Problem::new(Kind::NotReady, "this node is shutting down"));
    }
    match app.options.readiness.check() {
        Ok(()) => Ok(well(app)),
        Err(missing) => Err(Problem::new(Kind::NotReady, missing)),
    }
}

fn well<S: Store>(app: &App<S>) -> Response {
    let mut response = respond::plainly("ok\n");
    // A version consists of hexadecimal digits, so this never fails.
    let version = HeaderValue::from_str(app.limiter.policy().version());
    response.headers_mut().extend(version.map(|version| (POLICY, version)));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Extension;
    use axum::body::Body;
    use axum::http::Request;
    use tollgate::Limiter;
    use tollgate::model::Policy;
    use tollgate::store::Memory;
    use tower::ServiceExt;

    use super::*;
    use crate::http::{HttpOptions, router};

    #[tokio::test]
    async fn a_node_that_drains_is_alive_and_not_ready() {
        let limiter = Arc::new(Limiter::new(Policy::default(), Memory::default()));
        let (phase, shutdown) = Shutdown::new();
        let version = limiter.policy().version().to_string();
        let router = router(limiter, HttpOptions::default()).layer(Extension(shutdown));
        let status = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            let policy = response.headers().get("x-tollgate-policy");
            assert_eq!(
                policy.map(HeaderValue::as_bytes),
                (status == 200).then_some(version.as_bytes())
            );
            status
        };
        assert_eq!((status("/readyz").await, status("/healthz").await), (200, 200));
        phase.send_replace(Phase::Draining);
        assert_eq!((status("/readyz").await, status("/healthz").await), (503, 200));
    }
}
