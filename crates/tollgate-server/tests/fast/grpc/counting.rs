//! Domains with `counting: each`, which count each descriptor on its own, as the reference server
//! does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tollgate::model::{Algorithm, Charge, Operation, Readings, Store, StoreError, Timestamp};
use tollgate::store::Memory;

use crate::grpc::world::{Opening, World, counting, descriptor, giving_back, printed};

const POLICY: &str = "
limits:
  two:  { quota: 2, window: 1m, anchor: calendar }
  five: { quota: 5, window: 1m, anchor: calendar }
descriptors:
  - domain: edge
    counting: each
    tree:
      - { key: two, limit: two }
      - { key: five, limit: five }
      - { key: shut, blocked: true, name: shut }
      - { key: q, limit: two, name: q, mode: quota }
";

#[tokio::test]
async fn what_one_descriptor_refuses_the_others_still_count() {
    let world = World::new(POLICY).await;
    let both = || vec![descriptor("two=1"), descriptor("five=1")];
    for (overall, two, left) in [("OK", 1, 4), ("OK", 0, 3)] {
        let expected = format!(
            "{overall}: OK two 2/MINUTE left {two} in 50s; OK five 5/MINUTE left {left} in 50s"
        );
        assert_eq!(printed(&world.decide(both()).await), expected);
    }
    let refused = world.decide(both()).await;
    let expected = "OVER: OVER two 2/MINUTE left 0 in 50s; OK five 5/MINUTE left 2 in 50s";
    assert_eq!(printed(&refused), expected);
    let blocked = world.decide(vec![descriptor("five=1"), descriptor("shut=1")]).await;
    assert_eq!(printed(&blocked), "OVER: OK five 5/MINUTE left 1 in 50s; OVER shut 0");
}

#[tokio::test]
async fn the_same_descriptor_twice_is_counted_twice() {
    let world = World::new(POLICY).await;
    let answer = world.decide(vec![descriptor("five=1"), descriptor("five=1")]).await;
    assert!(printed(&answer).starts_with("OK: "));
    let look = world.decide(vec![counting("five=1", 0)]).await;
    assert_eq!(printed(&look), "OK: OK five 5/MINUTE left 3 in 50s");
}

#[tokio::test]
async fn an_impossible_hit_leaves_the_others_alone() {
    let world = World::new(POLICY).await;
    let answer = world.decide(vec![counting("two=1", u64::MAX), descriptor("five=1")]).await;
    let expected = "OVER: OVER two 2/MINUTE left 2 in 50s; OK five 5/MINUTE left 4 in 50s";
    assert_eq!(printed(&answer), expected);
    let back = world.decide(vec![giving_back("five=1", 1), descriptor("two=1")]).await;
    let expected = "OK: OK five 5/MINUTE left 5 in 50s; OK two 2/MINUTE left 1 in 50s";
    assert_eq!(printed(&back), expected);
}

#[tokio::test]
async fn quotas_are_alternatives_here_as_well() {
    let world = World::new(POLICY).await;
    world.decide(vec![counting("q=1", 2)]).await;
    let answer = world.decide(vec![descriptor("q=1"), descriptor("q=2")]).await;
    let expected = "OK: OVER q 2/MINUTE left 0 in 50s; OK q 2/MINUTE left 1 in 50s";
    assert_eq!(printed(&answer), expected);
    let answer = world.decide(vec![descriptor("q=1"), counting("q=2", 2)]).await;
    assert!(printed(&answer).starts_with("OVER: OVER "));
}

/// A store that counts the released permits.
struct Releases(Memory, Arc<AtomicUsize>);

impl Store for Releases {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let is_release = |charge: &&Charge<'_>| {
            matches!(charge.limit.algorithm(), Algorithm::Concurrency(_))
                && matches!(charge.operation, Operation::Refund { .. })
        };
        self.1.fetch_add(charges.iter().filter(is_release).count(), Ordering::Relaxed);
        self.0.apply(now, charges).await
    }
}

/// The bug: a candidate that counts requests in flight took a permit for each request, and nothing
/// released the permit, because Envoy does not report the end of a request.
#[tokio::test]
async fn the_permits_of_a_candidate_were_held_until_they_expired() {
    let policy = POLICY.replace(
        "  five: { quota: 5, window: 1m, anchor: calendar }",
        "  five: { quota: 5, window: 1m, candidate: { algorithm: concurrency, quota: 1 } }",
    );
    let released = Arc::new(AtomicUsize::new(0));
    let store = Releases(Memory::default(), Arc::clone(&released));
    let world = World::over(store, &policy, Opening::default()).await;
    for expected in [1, 2] {
        world.decide(vec![descriptor("five=1")]).await;
        assert_eq!(released.load(Ordering::Relaxed), expected);
    }
}
