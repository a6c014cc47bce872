//! A shadow store: differences are counted by kind, and shown.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::Server as Redis;
use crate::memcached::Server as Memcached;
use crate::migration::site::{Site, charge, in_memcached, in_redis, node, status};
use crate::support::client::{Client, fetch};
use crate::support::node::{Node, PATIENCE};

const QUOTA: u64 = 3;

/// A time above the smallest difference between two resets that is reported.
const APART: Duration = Duration::from_millis(20);

/// Returns the status of both stores after this number of comparisons.
fn compared(node: &Node, charges: u64) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let counts = status(node)["counts"].take();
        if counts["compared"] == charges {
            return counts;
        }
        assert!(Instant::now() < deadline, "{counts}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn planted_differences_are_counted_by_their_kind() {
    let (redis, memcached) = (Redis::start().await, Memcached::start());
    let site = Site::new();
    let single = |name: &str, store: &str| node(&site.policy(name, QUOTA, store));
    let in_both = [
        single("redis.yaml", &in_redis(&redis)),
        single("memcached.yaml", &in_memcached(&memcached)),
    ];
    let mut clients =
        [&in_both[0], &in_both[1]].map(|node| Client::connect(node.listener("http")).unwrap());
    // The requests are charged in both stores, in windows that opened one after the other: the same
    // units, another reset.
    for client in &mut clients {
        charge(client, "reset");
        thread::sleep(APART);
    }
    // Charged in one only, and used up in one only.
    charge(&mut clients[1], "remaining");
    for _ in 0..QUOTA {
        charge(&mut clients[1], "decision");
    }

    let store = format!(
        "{{ shadow: {{ store: {}, shadow_store: {} }} }}",
        in_redis(&redis),
        in_memcached(&memcached),
    );
    let node = node(&site.policy("policy.yaml", QUOTA, &store));
    let mut client = Client::connect(node.listener("http")).unwrap();
    for token in ["alike", "reset", "remaining", "decision"] {
        // The first store decides, whatever the second store's decision.
        assert!(charge(&mut client, token).is_admitted, "{token}");
    }
    let response = compared(&node, 4);
    let kinds = json!({ "decision": 1, "remaining": 1, "reset": 1 });
    assert_eq!(response["differences"], kinds, "{response}");
    for of in ["unanswered", "skipped", "uncomparable"] {
        assert_eq!(response[of], 0, "{of}: {response}");
    }
    assert_eq!(response["examples"].as_array().unwrap().len(), 3, "{response}");
    assert_examples(&response);
    assert_metrics(&node);
}

/// Each example contains its limit and both decisions, but not the subject.
fn assert_examples(response: &Value) {
    let example = |kind: &str| {
        let examples = response["examples"].as_array().unwrap();
        let found = examples.iter().find(|example| example["kind"] == kind);
        found.unwrap_or_else(|| panic!("no {kind} in {response}"))
    };
    let answers = |kind: &str, of: &str| {
        let example = example(kind);
        assert_eq!(example["limit"], "core", "{example}");
        ["store", "shadow_store"].map(|side| example[side][of].clone())
    };
    assert_eq!(answers("decision", "admitted"), [true, false]);
    assert_eq!(answers("remaining", "admitted"), [true, true]);
    assert_eq!(answers("remaining", "used"), [1, 2]);
    assert_eq!(answers("reset", "used"), [2, 2]);
    let [first, second] = answers("reset", "full_reset_at_ms").map(|at| at.as_u64().unwrap());
    assert!(second > first, "{response}");
}

fn assert_metrics(node: &Node) {
    let page = fetch(node.listener("admin"), "GET", "/metrics", None).body;
    for line in [
        "tollgate_shadow_store_percent 100",
        "tollgate_shadow_store_compared_charges_total 4",
        "tollgate_shadow_store_differences_total{kind=\"decision\"} 1",
        "tollgate_shadow_store_differences_total{kind=\"remaining\"} 1",
        "tollgate_shadow_store_differences_total{kind=\"reset\"} 1",
        "tollgate_shadow_store_missed_total{reason=\"skipped\"} 0",
    ] {
        assert!(page.lines().any(|response| response == line), "no `{line}` in\n{page}");
    }
}
