//! An axum service behind a limit of 3 requests a minute for each address.
//!
//! `cargo run -p tollgate --features axum --example axum`, then `curl -i http://127.0.0.1:3000/`
//! four times.

use std::net::SocketAddr;

use axum::{Router, routing::get};
use tokio::net::TcpListener;
use tollgate::{Quota, RateLimitLayer};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    serve(listener).await
}

pub(crate) async fn serve(listener: TcpListener) -> std::io::Result<()> {
    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(RateLimitLayer::by_ip(Quota::per_minute(3).fixed_window()));
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
}
