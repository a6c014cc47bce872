//! Which path leads where.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tollgate::Limiter;
use tollgate::core::Store;

use super::app::{App, HttpOptions};
use super::authorize::authorize;
use super::body::JsonBody;
use super::idempotency::{Answer, Key, Told};
use super::openapi::openapi;
use super::problem::{Kind, Problem};
use super::{gate, health};
use crate::grpc::json_route;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The routes of the HTTP/JSON door over `limiter`.
///
/// Verdicts need the token that `options` ask for; `/healthz` and `/readyz` need none. Under
/// another server than [`HttpDoor`](super::HttpDoor) a node that drains stays ready.
pub fn router<S: Store + 'static>(limiter: Arc<Limiter<S>>, options: HttpOptions) -> Router {
    let descriptors = json_route(Arc::clone(&limiter));
    let app = App::new(limiter, options);
    let guarded = Router::new()
        .merge(descriptors)
        .route("/v1/check", post(check::<S>))
        .route("/v1/check/batch", post(check_batch::<S>))
        .route("/v1/peek", post(peek::<S>))
        .route("/v1/refund", post(refund::<S>))
        .route("/v1/release", post(release::<S>))
        .route("/v1/standing", get(standing::<S>))
        .route_layer(from_fn_with_state(Arc::clone(&app), gate::admit::<S>));
    Router::new()
        .merge(guarded)
        // Its token is another: `authorization` is that of the proxy's client.
        .route("/v1/authorize", get(authorize::<S>).post(authorize::<S>))
        .route("/healthz", get(health::live))
        .route("/openapi.json", get(described))
        .route("/readyz", get(health::ready::<S>))
        .fallback(async || Problem::new(Kind::NotFound, "the paths are those of /openapi.json"))
        .method_not_allowed_fallback(async || {
            Problem::new(Kind::MethodNotAllowed, "the `allow` field tells which methods are")
        })
        .with_state(app)
}

async fn check<S: Store + 'static>(
    State(app): State<Arc<App<S>>>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Response {
    let asked = (Arc::clone(&app), body.clone());
    let carry_out = || async move { document(asked.0.check(&asked.1).await) };
    once(&app, &headers, [b"check", &body], carry_out).await
}

async fn check_batch<S: Store + 'static>(
    State(app): State<Arc<App<S>>>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Response {
    let asked = (Arc::clone(&app), body.clone());
    let carry_out = || async move { document(asked.0.check_batch(&asked.1).await) };
    once(&app, &headers, [b"batch", &body], carry_out).await
}

async fn peek<S: Store + 'static>(
    State(app): State<Arc<App<S>>>,
    JsonBody(body): JsonBody,
) -> Response {
    response(document(app.peek(&body).await))
}

async fn refund<S: Store + 'static>(
    State(app): State<Arc<App<S>>>,
    JsonBody(body): JsonBody,
) -> Response {
    response(document(app.refund(&body).await))
}

async fn release<S: Store + 'static>(
    State(app): State<Arc<App<S>>>,
    JsonBody(body): JsonBody,
) -> Response {
    response(document(app.release(&body).await))
}

async fn standing<S: Store + 'static>(
    State(app): State<Arc<App<S>>>,
    RawQuery(query): RawQuery,
) -> Response {
    response(document(app.standing(query.as_deref().unwrap_or_default()).await))
}

async fn described() -> Response {
    static DOCUMENT: LazyLock<Answer> = LazyLock::new(|| document(Ok(openapi())));
    response(DOCUMENT.clone())
}

/// Carries a request out, once for each key.
async fn once<S: Store, F>(
    app: &App<S>,
    headers: &HeaderMap,
    request: [&[u8]; 2],
    carry_out: impl FnOnce() -> F,
) -> Response
where
    F: Future<Output = Answer> + Send + 'static,
{
    let key = match Key::of(headers) {
        Ok(Some(key)) => key,
        Ok(None) => return response(carry_out().await),
        Err(problem) => return problem.into_response(),
    };
    let (answer, told) = app.remembered.once(app.limiter.now(), &key, request, carry_out).await;
    let mut response = response(answer);
    if told == Told::Again {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

fn document(answer: Result<impl Serialize, Problem>) -> Answer {
    /// Bytes of a verdict on one limit or two, with its receipt: it is written in one piece.
    const USUAL: usize = 1024;
    let mut written = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut written, &answer?)
        .map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
    Ok(Bytes::from(written))
}

fn response(answer: Answer) -> Response {
    match answer {
        Ok(document) => {
            let json = HeaderValue::from_static("application/json");
            (StatusCode::OK, [(header::CONTENT_TYPE, json)], Body::from(document)).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}
