//! Clients that start a request and do not finish it.

use crate::support::client::{Client, fetch, send_line};
use crate::support::grpc::{HEALTH, call};
use crate::support::node::{Folder, Node};

/// Incomplete requests at a listener.
const SLOW: usize = 2_000;

#[test]
fn two_thousand_half_sent_requests_over_http_end_while_others_are_served() {
    end_while_served("http", "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncont", |address| {
        assert_eq!(fetch(address, "POST", "/v1/check", None).status, 200);
    });
}

#[test]
fn two_thousand_half_sent_introductions_over_grpc_end_while_others_are_served() {
    end_while_served("grpc", "PRI * HTTP/2.0\r\n\r\nS", |address| {
        assert_eq!(call(address, HEALTH, None).0, "0");
    });
}

#[test]
fn two_thousand_half_sent_commands_end_while_others_are_served() {
    end_while_served("resp", "*3\r\n$4\r\nECHO\r\n$10\r\nabc", |address| {
        assert_eq!(send_line(address, &["PING"]), ["+PONG"]);
    });
}

fn end_while_served(listener: &str, half: &str, serve: fn(&str)) {
    let node = Node::open(&Folder::new("").policy());
    let address = node.listener(listener);
    let slow = (0..SLOW).map(|_| {
        let mut client = Client::connect(address).unwrap();
        client.send(half).unwrap();
        client
    });
    let slow: Vec<Client> = slow.collect();
    for (index, mut client) in slow.into_iter().enumerate() {
        if index % 100 == 0 {
            serve(address);
        }
        // The read fails if the connection stays open.
        client.rest();
    }
    serve(address);
}
