//! A server without tower. The server passes the head of each request to the limiter and builds the
//! response itself. Servers with actix-web or plain hyper use the limiter in the same way.
//!
//! `cargo run -p tollgate --example without_tower`

use std::error::Error;
use std::net::SocketAddr;

use http::request::Parts;
use http::{Request, Response, StatusCode};
use tollgate::{Quota, RateLimiter, RequestLimiter, Rule};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let limiter = limiter()?;
    let peer = "192.0.2.7:4711".parse()?;
    for _ in 0..4 {
        let (parts, ()) = Request::get("/search?q=toll").body(())?.into_parts();
        let response = handle(&limiter, &parts, peer).await;
        println!("{} {:?}", response.status(), response.headers());
    }
    Ok(())
}

pub(crate) fn limiter() -> Result<RequestLimiter, tollgate::BuildError> {
    RateLimiter::builder()
        .limit("per-address", Quota::per_minute(10).fixed_window().per("ip"))
        .rule(Rule::path("/health").exempt())
        .rule(Rule::path("/search").cost(5))
        .build()
}

pub(crate) async fn handle(
    limiter: &RequestLimiter,
    parts: &Parts,
    peer: SocketAddr,
) -> Response<&'static str> {
    let decision = limiter.check(parts, Some(peer)).await;
    let admitted = decision.is_admitted();
    let mut response = Response::new(if admitted { "hello\n" } else { "too many requests\n" });
    if !admitted {
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    }
    decision.write_headers(response.headers_mut());
    response
}
