//! An axum service behind a limit of 3 requests a minute for each address.
//!
//! `cargo run -p tollgate --example axum`, then `curl -i http://127.0.0.1:3000/` four times.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::ConnectInfo;
use axum::http::Extensions;
use axum::{Router, routing::get};
use tokio::net::TcpListener;
use tollgate::core::algo::{Anchor, FixedWindow};
use tollgate::core::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, RequestMatch, Rule, SubjectSource,
};
use tollgate::core::{Algorithm, Cost, Limit, Millis, Policy};
use tollgate::store::Memory;
use tollgate::{Limiter, tower::Layer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    serve(listener).await
}

pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn std::error::Error>> {
    let limiter = Limiter::new(policy()?, Memory::default());
    // axum knows the client's address only when it is told to serve with it, as below.
    let peer = |extensions: &Extensions| {
        extensions.get::<ConnectInfo<SocketAddr>>().map(|connection| connection.0)
    };
    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .layer(Layer::new(limiter).with_peer_from(peer));
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

/// What `policies/*.yaml` say in a file, said in code.
fn policy() -> Result<Policy, Box<dyn std::error::Error>> {
    let address = Dimension {
        name: "address".into(),
        source: SubjectSource::ClientAddress { ipv4_prefix: 32, ipv6_prefix: 64 },
    };
    let window = FixedWindow::new(3, Millis::from_secs(60), Anchor::FirstRequest)?;
    let limit = Limit::new("per-address", Algorithm::FixedWindow(window))?;
    let rule = Rule::new(
        "everything",
        RequestMatch::default(),
        vec![LimitRef { limit: 0, cost: Cost::ONE }],
    );
    let limits = vec![LimitBinding { limit: Arc::new(limit), per: vec![0] }];
    Policy::new(vec![address], limits, vec![rule], MatchMode::FirstMatch)
        .ok_or_else(|| "the policy points to something that is not there".into())
}
