//! A primary that does not answer, and the resources of a node that continues without it.

use std::fs;
use std::thread;
use std::time::Instant;

use serde_json::Value;
use tollgate_conformance::{Figure, assert_held};

use crate::kit::Server;
use crate::shards::fleet::node;
use crate::support::client::{Client, fetch};
use crate::support::node::{Folder, Node, PATIENCE};

const CLIENTS: usize = 4;
/// The number of charges of each client, each with another token, before the outage and during the
/// outage.
const CHARGES: usize = 1_500;
/// The allowed growth of the process's memory in KiB. The charges that the node makes later take 3
/// MiB of this growth, in a table of `MAX_LOCAL_CHARGES` entries.
const GROWTH: u64 = (10 + 3) * 1024;
/// The sockets in addition to those of the clients and servers: one that tries to reach the
/// primary.
const SEEKING: u64 = 1;

/// The resources of a process.
#[derive(Debug)]
struct Held {
    memory_kib: u64,
    sockets: usize,
}

impl Held {
    fn by(node: &Node) -> Self {
        let status = fs::read_to_string(format!("/proc/{}/status", node.id())).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let descriptors = fs::read_dir(format!("/proc/{}/fd", node.id())).unwrap().flatten();
        let is_socket = |descriptor: &fs::DirEntry| {
            let target = fs::read_link(descriptor.path()).unwrap_or_default();
            target.to_string_lossy().starts_with("socket:")
        };
        Self {
            memory_kib: memory.trim().trim_end_matches(" kB").parse().unwrap(),
            sockets: descriptors.filter(is_socket).count(),
        }
    }
}

/// Charges many tokens once, and returns how often `store` and other sources decided.
fn charge(client: &mut Client, tokens: std::ops::Range<usize>) -> [usize; 2] {
    let mut decided = [0; 2];
    for token in tokens {
        let body = format!(
            "{{\"limits\":[{{\"name\":\"core\",\"subject\":{{\"token\":\"t{token}\"}}}}]}}"
        );
        let answer = client.exchange("POST", "/v1/check", &body);
        assert_eq!(answer.status, 200, "{}", answer.body);
        decided[usize::from(!answer.body.contains("\"source\":\"store\""))] += 1;
    }
    decided
}

/// Charges the tokens of all clients concurrently, on persistent connections.
fn charge_all(clients: &mut [Client]) -> [usize; 2] {
    thread::scope(|scope| {
        let charging: Vec<_> = clients
            .iter_mut()
            .enumerate()
            .map(|(number, client)| {
                scope.spawn(move || charge(client, number * CHARGES..(number + 1) * CHARGES))
            })
            .collect();
        charging
            .into_iter()
            .map(|it| it.join().unwrap())
            .fold([0; 2], |[a, b], [c, d]| [a + c, b + d])
    })
}

fn stands_by(node: &Node, circuit: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let response: Value =
            serde_json::from_str(&fetch(node.listener("admin"), "GET", "/v1/status", None).body)
                .unwrap();
        if response["shards"][0]["servers"][0]["circuit_breaker"] == circuit {
            return;
        }
        assert!(Instant::now() < deadline, "{response}");
        thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Returns a policy with one limit over `server`.
fn policy(server: &Server) -> Folder {
    Folder::with(&format!(
        "subjects: {{ token: {{ header: authorization }} }}\n\
         limits: {{ core: {{ quota: 9, window: 1h, per: token }} }}\n\
         rules: [ {{ limits: core }} ]\n\
         store: {{ redis: {{ shards: {{ s0: {{ primary: \"{}\" }} }} }} }}\n",
        server.url()
    ))
}

#[tokio::test]
async fn it_costs_neither_memory_nor_connections() {
    let server = Server::start().await;
    let folder = policy(&server);
    let node = node(&folder.policy());
    let mut clients: Vec<_> =
        (0..CLIENTS).map(|_| Client::connect(node.listener("http")).unwrap()).collect();
    let [by_store, _] = charge_all(&mut clients);
    assert!(by_store > 0, "the shard was never asked");
    // The local fallback has allocated its tables by now.
    server.freeze();
    charge(&mut clients[0], 0..1);
    stands_by(&node, "open");
    let before = Held::by(&node);
    let [_, admitted] = charge_all(&mut clients);
    let again = charge_all(&mut clients);
    let after = Held::by(&node);
    server.thaw();
    let growth = after.memory_kib.saturating_sub(before.memory_kib);
    let sockets = after.sockets.saturating_sub(before.sockets);
    assert_eq!((admitted, again), (CLIENTS * CHARGES, [0, CLIENTS * CHARGES]), "it was frozen");
    assert_held(&[
        Figure::fault_seen("decisions by the node alone", (admitted + again[1]) as u64),
        Figure::at_most("KiB more in memory", growth, GROWTH),
        Figure::at_most("sockets more", sockets as u64, SEEKING),
    ]);
    stands_by(&node, "closed");
    assert!(charge(&mut clients[0], 0..CHARGES)[0] > 0, "the shard is asked again");
}

#[tokio::test]
async fn a_kill_switch_can_be_set_while_its_shard_is_frozen() {
    let server = Server::start().await;
    let folder = policy(&server);
    let node = node(&folder.policy());
    let admin = node.listener("admin");
    let connect = |listener: &str| Client::connect(node.listener(listener)).unwrap();
    server.freeze();
    let switch =
        r#"{"limit":"core","everybody":true,"blocked":true,"expires_in":"1h","reason":"attack"}"#;
    let response = connect("admin").exchange("PUT", "/v1/overrides", switch);
    assert_eq!(response.status, 200, "{}", response.body);
    let response: Value = serde_json::from_str(&response.body).unwrap();
    assert_eq!((&response["pending"], &response["after"]["blocked"]), (&true.into(), &true.into()));
    let check = r#"{"limits":[{"name":"core","subject":{"token":"t"}}]}"#;
    let refused = connect("http").exchange("POST", "/v1/check", check);
    assert!(refused.body.contains("\"admitted\":false"), "{}", refused.body);
    let listed = || -> Value {
        serde_json::from_str(&fetch(admin, "GET", "/v1/overrides", None).body).unwrap()
    };
    let local = listed();
    assert_eq!((&local["pending"], &local["overrides"][0]["pending"]), (&1.into(), &true.into()));
    server.thaw();
    let deadline = Instant::now() + PATIENCE;
    while listed()["pending"] != 0 {
        assert!(Instant::now() < deadline, "{}", listed());
        thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(listed()["overrides"][0]["blocked"], true);
}
