//! Limits of which nodes take parts in advance: nodes that die and nodes that end.

use std::sync::Arc;
use std::thread;

use crate::fleet::Fleet;
use crate::world::Proxy;

const QUOTA: usize = 2_000;

/// The most units that one of two nodes has and does not use: a quarter of the quota for both.
const UNUSED_AT_MOST: usize = QUOTA / 8;

/// What each node admits before one of them is gone, of which it has taken more in advance.
const BEFORE: usize = 400;

const CLIENTS: usize = 4;

/// Two nodes that are both hot.
async fn hot_nodes(fleet: &Fleet) -> [Arc<Proxy>; 2] {
    let policy = fleet.policy(
        &format!(
            "limits: {{ hot: {{ quota: {QUOTA}, window: 1h, per: token, mode: leased }} }}\n\
             rules: [{{ limits: hot }}]\n"
        ),
        "deadline: 10s, nodes: 2",
    );
    let nodes = [Proxy::start(&policy), Proxy::start(&policy)].map(Arc::new);
    let client = |number: usize| {
        let node = Arc::clone(&nodes[number % 2]);
        thread::spawn(move || (0..BEFORE / CLIENTS).all(|_| status(&node) == 200))
    };
    let clients: Vec<_> = (0..2 * CLIENTS).map(client).collect();
    assert!(clients.into_iter().all(|client| client.join().unwrap()), "far from the limit");
    nodes
}

fn status(node: &Proxy) -> u16 {
    node.get("/", &["authorization: Bearer hot"]).status
}

/// What `node` admits until it refuses.
fn drained(node: &Proxy) -> usize {
    (0..=QUOTA).find(|_| status(node) == 429).expect("no more than the quota")
}

#[tokio::test]
async fn a_node_that_is_killed_leaves_at_most_its_lease_unused() {
    let fleet = Fleet::start().await;
    let [dying, other] = hot_nodes(&fleet).await;
    // By SIGKILL.
    drop(dying);
    let admitted = 2 * BEFORE + drained(&other);
    assert!(admitted <= QUOTA, "{admitted} of {QUOTA}");
    assert!(QUOTA - admitted <= UNUSED_AT_MOST, "{admitted} of {QUOTA}");
    println!("unused: {} ≤ {UNUSED_AT_MOST}", QUOTA - admitted);
}

#[tokio::test]
async fn a_node_that_is_told_to_end_gives_its_lease_back() {
    let fleet = Fleet::start().await;
    let [ending, other] = hot_nodes(&fleet).await;
    let ending = Arc::into_inner(ending).expect("its clients have ended");
    let (said, code) = ending.terminate();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(2 * BEFORE + drained(&other), QUOTA);
}
