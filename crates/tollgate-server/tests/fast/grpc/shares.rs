//! Limits that are enforced for some subjects, in charges of several descriptors.

use crate::grpc::world::{World, counting, descriptor, printed};

const POLICY: &str = "
limits:
  counted: { quota: 1, window: 1m, anchor: calendar, enforce: 0% }
  five:    { quota: 5, window: 1m, anchor: calendar }
descriptors:
  - domain: edge
    tree:
      - { key: one, limit: counted, name: one }
      - { key: other, limit: five, name: other }
";

#[tokio::test]
async fn who_is_not_held_to_a_limit_has_no_status_of_another() {
    let world = World::new(POLICY).await;
    for left in [4, 3, 2] {
        let answer = world.decide(vec![descriptor("one=1"), descriptor("other=1")]).await;
        assert_eq!(printed(&answer), format!("OK: OK; OK other 5/MINUTE left {left} in 50s"));
    }
    // Without a charge too: these hits are more than any limit can count.
    let answer = world.decide(vec![descriptor("one=1"), counting("other=1", u64::MAX)]).await;
    assert_eq!(printed(&answer), "OVER: OK; OVER other 5/MINUTE left 2 in 50s");
}
