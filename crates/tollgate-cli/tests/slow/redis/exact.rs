//! Exact counts over several nodes.

use std::sync::Arc;
use std::thread;

use crate::redis::fleet::{Fleet, Form, in_every_form};
use crate::support::world::Proxy;

/// Settings with a deadline that every decision meets even on a busy machine, so counts stay exact.
const PATIENT: &str = "deadline: 10s, nodes: 2";

in_every_form! {
    two_nodes_admit_together_what_one_limit_holds
}

async fn two_nodes_admit_together_what_one_limit_holds(form: Form) {
    let fleet = Fleet::start_in(form).await;
    let policy = fleet.policy(
        "limits: { hundred: { quota: 100, window: 1h, per: token } }\n\
         rules: [{ limits: hundred }]\n\
         answers: { headers: github }",
        PATIENT,
    );
    let nodes = [Proxy::start(&policy), Proxy::start(&policy)].map(Arc::new);
    let clients = (0..250).map(|number| {
        let node = Arc::clone(&nodes[number % 2]);
        thread::spawn(move || node.get("/", &["authorization: Bearer hot"]))
    });
    let clients: Vec<_> = clients.collect();
    let answers: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    let mut used: Vec<u64> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .map(|answer| answer.field("x-ratelimit-used").parse().unwrap())
        .collect();
    used.sort_unstable();
    assert_eq!(used, (1..=100).collect::<Vec<_>>());
    assert_eq!(answers.iter().filter(|answer| answer.status == 429).count(), 150);
    let resets: std::collections::HashSet<_> =
        answers.iter().map(|answer| answer.field("x-ratelimit-reset")).collect();
    assert_eq!(resets.len(), 1, "{resets:?}");
}

#[tokio::test]
async fn all_limits_of_a_client_are_on_one_shard_and_clients_are_spread() {
    let fleet = Fleet::start().await;
    let policy = fleet.policy(
        "limits:\n\
         \x20 core:   { quota: 100, window: 1h, per: token }\n\
         \x20 points: { algorithm: token_bucket, quota: 900, window: 1m, per: [address, token] }\n\
         \x20 burst:  { algorithm: sliding_window, quota: 90, window: 1m, precision: 1s, per: token }\n\
         rules: [{ limits: [core, points, burst] }]",
        PATIENT,
    );
    let proxy = Proxy::start(&policy);
    for number in 0..32 {
        let before = fleet.keys().await;
        assert_eq!(proxy.get("/", &[&format!("authorization: Bearer {number}")]).status, 200);
        let after = fleet.keys().await;
        let new = [after[0] - before[0], after[1] - before[1]];
        assert!(new == [3, 0] || new == [0, 3], "{number}: {new:?}");
    }
    let keys = fleet.keys().await;
    assert!(keys[0] > 0 && keys[1] > 0, "{keys:?}");
    for primary in &fleet.primaries {
        primary.assert_every_key_ends().await;
    }
}
