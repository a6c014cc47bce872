//! A server without tower. The server passes the head of each request to the limiter and builds the
//! response itself. Plain hyper servers use the limiter in the same way. So do servers with
//! actix-web 4, which must first build `http::request::Parts` from the method, the target and the
//! header fields, because actix-web 4 uses the types of `http` 0.2.
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
    let mut decision = limiter.check(parts, Some(peer)).await;
    let admitted = decision.is_admitted();
    let mut response = Response::new(if admitted { "hello\n" } else { "too many requests\n" });
    if !admitted {
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    }
    decision.finish(response.status());
    decision.write_headers(response.headers_mut());
    // This response has ended here. If a limit bounds the requests in flight, a server that streams
    // its responses keeps the decision until the last byte.
    response
}
