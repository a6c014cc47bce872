//! A gRPC service behind `RateLimitLayer`: at most three calls per minute from each address. The
//! example serves the standard gRPC health service; the layer limits any other tonic service in the
//! same way.
//!
//! `cargo run -p tollgate --example tonic`

use std::error::Error;

use http::{Response, StatusCode};
use tokio::net::TcpListener;
use tollgate::{Quota, RateLimitLayer};
use tonic::Status;
use tonic::body::Body;
use tonic::transport::Server;
use tonic::transport::server::{TcpConnectInfo, TcpIncoming};
use tower::util::MapResponseLayer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    serve(TcpListener::bind("127.0.0.1:3000").await?).await
}

pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let (_reporter, health) = tonic_health::server::health_reporter();
    let limit = RateLimitLayer::by_ip(Quota::per_minute(3).fixed_window())
        .peer_from(|extensions| extensions.get::<TcpConnectInfo>()?.remote_addr());
    Server::builder()
        .layer(MapResponseLayer::new(with_grpc_status))
        .layer(limit)
        .add_service(health)
        .serve_with_incoming(TcpIncoming::from(listener))
        .await?;
    Ok(())
}

/// Sets the gRPC status that clients expect of a refusal. A client of gRPC reads a bare 429 as
/// `UNAVAILABLE`.
fn with_grpc_status(response: Response<tollgate::tower::Body<Body>>) -> Response<Body> {
    if response.status() != StatusCode::TOO_MANY_REQUESTS {
        return response.map(Body::new);
    }
    let mut refusal: Response<Body> = Status::resource_exhausted("rate limit exceeded").into_http();
    for name in ["retry-after", "ratelimit", "ratelimit-policy"] {
        if let Some(value) = response.headers().get(name) {
            refusal.headers_mut().insert(name, value.clone());
        }
    }
    refusal
}
