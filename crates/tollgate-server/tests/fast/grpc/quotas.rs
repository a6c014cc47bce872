//! Quota groups, of which a request needs only one.

use crate::grpc::world::{World, counting, descriptor, printed};

const POLICY: &str = "
limits:
  two:  { quota: 2, window: 1m, anchor: calendar }
  five: { quota: 5, window: 1m, anchor: calendar }
descriptors:
  - domain: edge
    tree:
      - key: backend_name
        descriptors:
          - { key: model_name_override, limit: two, name: model, mode: quota }
          - key: model_name_override
            value: big
            descriptors:
              - { key: tenant, limit: five, name: tenant, mode: quota }
      - { key: all, limit: five, name: all }
      - { key: shut, blocked: true, mode: quota }
answers: { headers: [github] }
";

fn model(name: &str) -> String {
    format!("backend_name=b,model_name_override={name}")
}

#[tokio::test]
async fn one_group_with_room_is_enough() {
    let world = World::new(POLICY).await;
    let (small, large) = (model("small"), model("large"));
    world.decide(vec![counting(&small, 2)]).await;
    let answer = world.decide(vec![descriptor(&small), descriptor(&large)]).await;
    let expected = "OK: OVER model 2/MINUTE left 0 in 50s; OK model 2/MINUTE left 1 in 50s";
    assert_eq!(printed(&answer), expected);
    // A request that passes gets no header fields of the group that is over its limit.
    assert!(answer.response_headers_to_add.iter().all(|field| field.key != "retry-after"));
    let remaining =
        answer.response_headers_to_add.iter().find(|field| field.key == "x-ratelimit-remaining");
    assert_eq!(remaining.unwrap().value, "1");

    world.decide(vec![descriptor(&large)]).await;
    let refused = world.decide(vec![descriptor(&small), descriptor(&large)]).await;
    let expected = "OVER: OVER model 2/MINUTE left 0 in 50s; OVER model 2/MINUTE left 0 in 50s";
    assert_eq!(printed(&refused), expected);
}

#[tokio::test]
async fn a_group_is_over_once_any_of_it_is_and_is_then_not_counted() {
    let world = World::new(POLICY).await;
    let tenant = format!("{},tenant=t", model("big"));
    // `big` has a node only for tenants, so the model itself is not limited here.
    world.decide(vec![counting(&tenant, 4)]).await;
    let group = || vec![counting(&tenant, 2), descriptor(&model("small"))];
    let answer = world.decide(group()).await;
    let expected = "OK: OVER tenant 5/MINUTE left 1 in 50s; OK model 2/MINUTE left 1 in 50s";
    assert_eq!(printed(&answer), expected);
    let blocked = world.decide(vec![descriptor("shut=1"), descriptor(&model("small"))]).await;
    assert_eq!(printed(&blocked), "OK: OVER - 0; OK model 2/MINUTE left 0 in 50s");
    let shut = world.decide(vec![descriptor("shut=1")]).await;
    assert_eq!(printed(&shut), "OVER: OVER - 0");
}

#[tokio::test]
async fn what_is_enforced_decides_beside_them_and_nothing_is_left_of_a_refusal() {
    let world = World::new(POLICY).await;
    let small = model("small");
    world.decide(vec![counting("all=1", 5)]).await;
    let refused = world.decide(vec![descriptor(&small), descriptor("all=1")]).await;
    let expected = "OVER: OK model 2/MINUTE left 2 in 50s; OVER all 5/MINUTE left 0 in 50s";
    assert_eq!(printed(&refused), expected);
    let untouched = world.decide(vec![counting(&small, 0)]).await;
    assert_eq!(printed(&untouched), "OK: OK model 2/MINUTE left 2 in 50s");

    world.decide(vec![counting(&small, 2)]).await;
    let refused = world.decide(vec![descriptor(&small), descriptor("all=2")]).await;
    let expected = "OVER: OVER model 2/MINUTE left 0 in 50s; OK all 5/MINUTE left 5 in 50s";
    assert_eq!(printed(&refused), expected);
}
