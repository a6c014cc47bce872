//! Limiters that programs build over Redis.

use std::time::Duration;

use tollgate::{Clock, HashKey, Quota, RateLimiter, RequestLimiter, SystemClock};
use tollgate_backend::{Backend, Redis};

use crate::kit::{Server, Version, WallClock};
use crate::redis::fleet::key;

/// A deadline that is longer than any decision takes on a busy machine.
const PATIENT: Duration = Duration::from_secs(10);
const DAY: i64 = 86_400_000;

/// Starts a node and waits until it is connected.
async fn node(server: &Server, key: HashKey) -> RequestLimiter<Backend> {
    let limiter = RateLimiter::builder()
        .limit("hourly", Quota::per_hour(1).fixed_window())
        .store(Redis::connect([server.url()]).deadline(PATIENT))
        .hash_key(key)
        .build()
        .unwrap();
    limiter.limiter().store().started().await;
    limiter
}

async fn is_admitted(node: &RequestLimiter<Backend>) -> bool {
    let (parts, ()) = http::Request::new(()).into_parts();
    node.check(&parts, None).await.is_admitted()
}

#[tokio::test]
async fn nodes_share_counters_if_they_have_the_same_key() {
    let server = Server::start().await;
    let nodes = [node(&server, key()).await, node(&server, key()).await];
    assert!(is_admitted(&nodes[0]).await);
    assert!(!is_admitted(&nodes[1]).await);
    assert!(is_admitted(&node(&server, HashKey::random()).await).await);
}

/// The bug: a limiter that a program built decided by its own clock, even if this clock was wrong.
#[tokio::test]
async fn a_program_decided_by_its_own_clock_instead_of_the_servers() {
    let clock = WallClock::new();
    let server = Server::start_by(Version::default(), &clock, &[]).await;
    clock.set(DAY, &server).await;
    let node = node(&server, key()).await;
    let ahead = node.limiter().now().since(SystemClock.now()).get().cast_signed();
    assert!((ahead - DAY).abs() < DAY / 24, "{ahead} ms");
}
