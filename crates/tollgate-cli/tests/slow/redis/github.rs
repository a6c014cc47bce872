//! GitHub's shipped policy over two shards and through two nodes.

use serde_json::{Value, json};

use crate::redis::fleet::{Fleet, Form, SHARDS, in_every_form};
use crate::support::world::{Answer, Proxy, service};

in_every_form! {
    the_shipped_policy_holds_over_two_shards
}

/// A deadline that every decision meets even on a busy machine, so counts stay exact.
const PATIENT: &str = "10s";

const CREATE: &[u8] = b"POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
    content-length: 0\r\nauthorization: Bearer writer\r\n\r\n";

async fn the_shipped_policy_holds_over_two_shards(form: Form) {
    let mut fleet = Fleet::start_in(form).await;
    let policy = fleet.shipped("github-redis.yaml", PATIENT);
    let nodes = [(); 2].map(|()| {
        let mut node = Proxy::spawn(&format!("http://{}", service()), &policy);
        for _ in SHARDS {
            let line = node.wait_for_log("connected to");
            assert!(line.contains(form.logged()), "{line}");
        }
        node.listens();
        node
    });
    let tokens = [fleet.token_on(0, &nodes[0]).await, fleet.token_on(1, &nodes[0]).await];
    for token in &tokens {
        counts_together(&nodes, token);
        search_ends_after_thirty(&nodes, token);
    }
    hidden_limits_refuse(&nodes);
    anonymous_clients_have_sixty(&nodes);
    for primary in &fleet.primaries {
        primary.assert_every_key_ends().await;
    }

    let before = used(&nodes[0].get("/", &[&tokens[0]]));
    fleet.primaries[0].is_followed().await;
    fleet.primaries[0].kill();
    fleet.replicas[0].promote().await;
    for node in &nodes {
        while !node.wait_for_log("connected to").contains(&fleet.replicas[0].url()) {}
    }
    for (more, node) in (1..).zip(&nodes) {
        let answer = node.get("/", &[&tokens[0]]);
        assert_eq!((answer.status, used(&answer)), (200, before + more), "{answer:?}");
    }
}

/// Requests through both nodes count together in one window, and unchanged resources are refunded.
fn counts_together(nodes: &[Proxy; 2], token: &str) {
    let first = nodes[0].get("/", &[token]);
    assert_eq!(first.field("x-ratelimit-limit"), "5000");
    for more in 1..=20 {
        let answer = nodes[more as usize % 2].get("/", &[token]);
        assert_eq!((answer.status, used(&answer)), (200, used(&first) + more), "{answer:?}");
        assert_eq!(answer.field("x-ratelimit-reset"), first.field("x-ratelimit-reset"));
        assert_eq!(answer.field("x-ratelimit-resource"), "core");
    }
    let unchanged = nodes[0].get("/", &[token, "if-none-match: \"tag\""]);
    assert_eq!((unchanged.status, used(&unchanged)), (304, used(&first) + 20));
}

fn search_ends_after_thirty(nodes: &[Proxy; 2], token: &str) {
    for expected in 1..=30 {
        let answer = nodes[expected as usize % 2].get("/search/code?q=x", &[token]);
        assert_eq!((answer.status, used(&answer)), (200, expected), "{answer:?}");
        assert_eq!(answer.field("x-ratelimit-resource"), "search");
    }
    for node in nodes {
        assert_eq!(violated(&node.get("/search/code?q=x", &[token])), json!(["search"]));
    }
    assert_eq!(nodes[0].get("/", &[token]).status, 200, "the other limits have room");
}

/// Each request that creates something costs five of 900 points and one of 80 units of content.
fn hidden_limits_refuse(nodes: &[Proxy; 2]) {
    for number in 1..=80 {
        let answer = Answer::parse(&nodes[number as usize % 2].send(CREATE));
        assert_eq!((answer.status, used(&answer)), (200, number), "{answer:?}");
    }
    let refused = Answer::parse(&nodes[0].send(CREATE));
    assert_eq!(violated(&refused), json!(["content"]));
    let read = nodes[1].get("/", &["authorization: Bearer writer"]);
    assert_eq!(used(&read), 81, "the limits of a rule are charged together or not at all");
}

fn anonymous_clients_have_sixty(nodes: &[Proxy; 2]) {
    for expected in 1..=60 {
        let answer = nodes[expected as usize % 2].get("/", &[]);
        assert_eq!((answer.status, used(&answer)), (200, expected), "{answer:?}");
    }
    for node in nodes {
        assert_eq!(violated(&node.get("/", &[])), json!(["anonymous"]));
    }
}

#[track_caller]
fn used(answer: &Answer) -> u64 {
    answer.field("x-ratelimit-used").parse().unwrap_or_else(|_| panic!("{answer:?}"))
}

/// Returns the limits that refused a request.
fn violated(answer: &Answer) -> Value {
    assert_eq!(answer.status, 429, "{answer:?}");
    let problem: Value = serde_json::from_str(&answer.body).unwrap();
    problem["violated-policies"].clone()
}
