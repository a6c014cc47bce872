//! Clients that open connections and do not use them.

use std::fs;

use crate::support::client::{Client, fetch, send_line};
use crate::support::grpc::{HEALTH, call};
use crate::support::node::{Folder, Node};

/// The number of unused connections at each listener.
const SILENT: usize = 2_000;

/// The most connections of a listener. Each connection needs a file descriptor at both ends, so run
/// the test with `ulimit -n 12000`.
const AT_ONCE: usize = 10_000;

/// The number of connections beyond [`AT_ONCE`].
const MORE: usize = 100;

/// The most descriptors of a node without clients.
const OWN: usize = 100;

#[test]
fn connections_that_say_nothing_end_at_every_listener_while_others_are_served() {
    let node = Node::open(&Folder::new("").policy());
    let listeners = ["http", "grpc", "resp"].map(|listener| node.listener(listener));
    let flood =
        (0..SILENT).flat_map(|_| listeners).map(|listener| Client::connect(listener).unwrap());
    let flood: Vec<Client> = flood.collect();
    for (index, mut client) in flood.into_iter().enumerate() {
        if index % 300 == 0 {
            is_served(&node);
        }
        // The read fails if the connection stays open.
        client.rest();
    }
    is_served(&node);
}

fn is_served(node: &Node) {
    assert_eq!(fetch(node.listener("http"), "POST", "/v1/check", None).status, 200);
    assert_eq!(call(node.listener("grpc"), HEALTH, None).0, "0");
    assert_eq!(send_line(node.listener("resp"), &["PING"]), ["+PONG"]);
}

#[test]
fn a_listener_that_is_full_says_so_and_takes_the_next_when_one_leaves() {
    let node = Node::open(&Folder::new("").policy());
    let mut taken: Vec<Client> = (0..AT_ONCE).map(|_| entered(&node)).collect();
    let response = node.wait_for_log("connections are in use");
    assert!(response.contains("all 10000") && response.contains("resp"), "{response}");
    let mut waiting: Vec<Client> = (0..MORE)
        .map(|_| {
            let mut client = Client::connect(node.listener("resp")).unwrap();
            client.send("PING\r\n").unwrap();
            client
        })
        .collect();
    // Other listeners have their own connection limits.
    assert_eq!(fetch(node.listener("http"), "POST", "/v1/check", None).status, 200);
    let open = fs::read_dir(format!("/proc/{}/fd", node.id())).unwrap().count();
    assert!((AT_ONCE..AT_ONCE + OWN).contains(&open), "{open} descriptors");
    for client in &mut waiting {
        taken.pop();
        assert_eq!(client.line().unwrap(), "+PONG");
    }
}

fn entered(node: &Node) -> Client {
    let mut client = Client::connect(node.listener("resp")).unwrap();
    client.send("PING\r\n").unwrap();
    assert_eq!(client.line().unwrap(), "+PONG");
    client
}
