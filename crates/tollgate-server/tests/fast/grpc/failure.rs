//! Decisions while the store does not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate::model::{Charge, Readings, Store, StoreError, Timestamp};
use tollgate::store::memory::Memory;
use tonic::Code;

use crate::grpc::world::{Opening, World, descriptor, giving_back, printed, request};

/// A memory store that answers only while it is switched on.
#[derive(Default)]
struct Breakable {
    memory: Memory,
    is_broken: Arc<AtomicBool>,
}

impl Store for Breakable {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(StoreError::TimedOut);
        }
        self.memory.apply(now, charges).await
    }
}

fn policy(on_failure: &str) -> String {
    format!(
        "
limits: {{ two: {{ quota: 2, window: 1m, anchor: calendar }} }}
descriptors:
  - domain: edge
    on_failure: {on_failure}
    tree:
      - {{ key: a, limit: two }}
      - {{ key: dark, limit: two, mode: shadow }}
      - {{ key: q, limit: two, mode: quota }}
      - {{ key: shut, blocked: true }}
      - {{ key: free, unlimited: true }}
answers: {{ headers: [github, ietf] }}
"
    )
}

async fn broken(on_failure: &str) -> World {
    let store = Breakable::default();
    store.is_broken.store(true, Ordering::SeqCst);
    World::over(store, &policy(on_failure), Opening::default()).await
}

#[tokio::test]
async fn a_domain_that_denies_is_unavailable() {
    let world = broken("deny").await;
    for limited in ["a=1", "q=1"] {
        let both = vec![descriptor(limited), descriptor("free=1")];
        let status = world.send(request(both)).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{limited}");
        assert_eq!(status.message(), "the store did not answer in time");
    }
    // Descriptors without a store call get their normal answer, and so do those in shadow mode.
    for (free, expected) in [
        ("free=1", "OK: OK left 4294967295"),
        ("dark=1", "OK: OK"),
        ("none=1", "OK: OK"),
        ("shut=1", "OVER: OVER - 0"),
    ] {
        assert_eq!(printed(&world.decide(vec![descriptor(free)]).await), expected, "{free}");
    }
    let back = world.decide(vec![giving_back("a=1", 1)]).await;
    assert_eq!(printed(&back), "OK: OK");
}

#[tokio::test]
async fn a_domain_that_allows_lets_pass_and_says_nothing() {
    for on_failure in ["allow", "local"] {
        let world = broken(on_failure).await;
        let answer = world.decide(vec![descriptor("a=1"), descriptor("q=1")]).await;
        assert_eq!(printed(&answer), "OK: OK; OK", "{on_failure}");
        assert!(answer.response_headers_to_add.is_empty());
        // A blocked descriptor is refused without the store.
        let blocked = world.decide(vec![descriptor("a=1"), descriptor("shut=1")]).await;
        assert_eq!(printed(&blocked), "OVER: OK; OVER - 0", "{on_failure}");
    }
}

#[tokio::test]
async fn a_store_that_answers_again_decides_again() {
    let store = Breakable::default();
    let is_broken = Arc::clone(&store.is_broken);
    let world = World::over(store, &policy("deny"), Opening::default()).await;
    let one = || request(vec![descriptor("a=1")]);
    for left in [1, 0] {
        let answer = world.send(one()).await.unwrap();
        assert_eq!(printed(&answer), format!("OK: OK two 2/MINUTE left {left} in 50s"));
        is_broken.store(true, Ordering::SeqCst);
        assert_eq!(world.send(one()).await.unwrap_err().code(), Code::Unavailable);
        is_broken.store(false, Ordering::SeqCst);
    }
    assert!(printed(&world.send(one()).await.unwrap()).starts_with("OVER: OVER two "));
}
