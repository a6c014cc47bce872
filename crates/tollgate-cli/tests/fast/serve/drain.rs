//! The shutdown of a process.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::support::client::{Client, request};
use crate::support::grpc::GrpcClient;
use crate::support::node::{Folder, Node};

/// The number of concurrent clients of each listener.
const CLIENTS: usize = 20;

#[test]
fn sigterm_answers_every_request_under_load() {
    let node = Node::open(&Folder::new("").policy());
    let (started, starts) = channel();
    let begin = |listener: &str, work: fn(&str, &Sender<()>) -> u64| {
        let (address, started) = (node.listener(listener).to_owned(), started.clone());
        (0..CLIENTS).map(move |_| {
            let (address, started) = (address.clone(), started.clone());
            thread::spawn(move || work(&address, &started))
        })
    };
    let clients: Vec<_> = begin("http", ask_until_told)
        .chain(begin("grpc", call_until_told))
        .chain(begin("resp", say_until_eof))
        .collect();
    for _ in &clients {
        starts.recv().unwrap();
    }
    node.signal("-TERM");
    for client in clients {
        assert!(client.join().unwrap() > 0);
    }
    let (code, response) = node.ended();
    assert_eq!(code, Some(0), "{response}");
    assert!(response.ends_with("every request in flight has ended\n"), "{response}");
}

/// Sends requests on one connection until a response announces that it is the last one. Every
/// request that was sent is answered.
fn ask_until_told(address: &str, started: &Sender<()>) -> u64 {
    let mut client = Client::connect(address).unwrap();
    for requested in 1.. {
        let answer = client.check().unwrap();
        assert_eq!(answer.status, 200);
        if answer.is_last {
            return requested;
        }
        if requested == 1 {
            started.send(()).unwrap();
        }
    }
    unreachable!("a node ends before a u64 does")
}

/// Sends calls on one connection until it accepts no more calls. Every call that was sent is
/// answered.
fn call_until_told(address: &str, started: &Sender<()>) -> u64 {
    let mut client = GrpcClient::connect(address).unwrap();
    for called in 0.. {
        if !client.check().unwrap() {
            return called;
        }
        if called == 0 {
            started.send(()).unwrap();
        }
    }
    unreachable!("a node ends before a u64 does")
}

/// The protocol cannot announce the last reply: a command that crosses the shutdown is either
/// answered in full or not at all.
fn say_until_eof(address: &str, started: &Sender<()>) -> u64 {
    let mut client = Client::connect(address).unwrap();
    for described in 1.. {
        if client.send("PING\r\n").is_err() {
            return described;
        }
        match client.line() {
            Ok(reply) => assert_eq!(reply, "+PONG"),
            Err(_) => return described,
        }
        if described == 1 {
            started.send(()).unwrap();
        }
    }
    unreachable!("a node ends before a u64 does")
}

#[test]
fn a_request_that_is_half_sent_is_answered_and_readiness_turns_first() {
    let node = Node::open(&Folder::new("").policy());
    let mut half = Client::connect(node.listener("http")).unwrap();
    let request = request("POST", "/v1/check", None);
    let (head, body) = request.split_at(request.len() - 5);
    half.send(head).unwrap();
    let mut probe = Client::connect(node.listener("admin")).unwrap();
    let ready = "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n";
    probe.send(ready).unwrap();
    assert_eq!(probe.answer().unwrap().status, 200);
    node.signal("-TERM");
    node.wait_for_log("shutdown requested");
    // Either result is possible first; after the shutdown it stays the same.
    loop {
        probe.send(ready).unwrap();
        let answer = probe.answer().unwrap();
        if answer.is_last {
            assert_eq!(answer.status, 503);
            break;
        }
    }
    half.send(body).unwrap();
    let answer = half.answer().unwrap();
    assert!(answer.status == 200 && answer.is_last, "{answer:?}");
    assert_eq!(node.ended().0, Some(0));
}
