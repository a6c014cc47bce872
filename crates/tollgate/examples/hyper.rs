//! A plain hyper server behind `RateLimitLayer`: at most three requests per minute from each
//! address.
//!
//! `cargo run -p tollgate --example hyper`

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tollgate::tower::Peer;
use tollgate::{Quota, RateLimitLayer};
use tower::{Layer, ServiceExt, service_fn};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    serve(TcpListener::bind("127.0.0.1:3000").await?).await
}

pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let layer = RateLimitLayer::by_ip(Quota::per_minute(3).fixed_window());
    let limited = layer.layer(service_fn(hello));
    loop {
        let (stream, peer) = listener.accept().await?;
        let limited = limited.clone();
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            limited.clone().oneshot(request)
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn hello(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello\n")))
}
