//! The service that the demo protects: a page for every path, each with an entity tag.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

/// Serves until its task is dropped.
pub(crate) async fn serve(listener: TcpListener) {
    // An error is ignored, because the next connection can still be accepted.
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(async move {
            let service = service_fn(|request| async move { Ok::<_, Infallible>(page(&request)) });
            let server = auto::Builder::new(TokioExecutor::new());
            // An error is ignored, because it means that the client has disconnected.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Returns the page of a path, or 304 if the client already has that page.
fn page(request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let tag = entity_tag(request.uri().path());
    let is_known = request.headers().get(IF_NONE_MATCH).is_some_and(|known| *known == *tag);
    let mut response = if is_known {
        Response::new(Full::default())
    } else {
        let text = format!("{{\"path\":{:?},\"served_by\":\"demo\"}}\n", request.uri().path());
        Response::new(Full::new(text.into()))
    };
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        fields.insert(ETAG, tag);
    }
    response
}

/// Returns the entity tag of a path. The tag depends only on the path, because pages never change.
pub(crate) fn entity_tag(path: &str) -> String {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}
