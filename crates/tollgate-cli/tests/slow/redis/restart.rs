//! Nodes that restart one after the other under load: the final count in Redis is exactly the
//! number of admitted requests that were not refunded.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tollgate_conformance::{Figure, assert_held};

use crate::redis::fleet::{Fleet, Form, in_every_form};
use crate::redis::visitors::{CLIENTS, Sum, Visitor, Visitors};
use crate::support::client::Client;
use crate::support::node::{self, Node};
use crate::support::world::service;

const LIMITS: &str = "
limits: { core: { quota: 1_000_000, window: 1h, per: token } }
rules: [{ limits: core }]
answers: { refund: { status: 304 } }";

/// The number of times that each node is restarted.
const ROUNDS: usize = 3;

/// The subject of the requests.
const TOKEN: &str = "hot";

in_every_form! {
    the_proxy_loses_no_charge_and_no_refund
    the_service_loses_no_charge_and_no_refund
}

async fn the_proxy_loses_no_charge_and_no_refund(form: Form) {
    let fleet = Fleet::start_in(form).await;
    let policy = fleet.policy(LIMITS, "deadline: 10s");
    let upstream = service();
    loses_nothing(&policy, || proxy(&policy, upstream), pass);
}

async fn the_service_loses_no_charge_and_no_refund(form: Form) {
    let fleet = Fleet::start_in(form).await;
    let policy = fleet.policy(LIMITS, "deadline: 10s");
    loses_nothing(&policy, || serving(&policy), charge_and_give_back);
}

fn loses_nothing(policy: &Path, start: impl Fn() -> (Node, String), visit: fn(&mut Visitor)) {
    let [(mut one, at_one), (mut other, at_other)] = [start(), start()];
    let visitors = Visitors::begin([at_one, at_other], visit);
    let mut ended = 0;
    for _ in 0..ROUNDS {
        for (number, node) in [&mut one, &mut other].into_iter().enumerate() {
            visitors.go_on();
            node.signal("-TERM");
            let words = node.wait_for_log("every request in flight has ended");
            // While a node is down, all clients use the other one.
            visitors.go_on();
            let (next, address) = start();
            visitors.find(number, address);
            let (code, response) = std::mem::replace(node, next).ended();
            assert_eq!(code, Some(0), "{words}: {response}");
            ended += 1;
        }
    }
    visitors.go_on();
    let sum = visitors.end();
    let counted = counted(policy);
    let owed = sum.charged - sum.refunded;
    assert_held(&[
        Figure::fault_seen("nodes ended under load", ended),
        Figure::fault_seen("charges", sum.charged),
        Figure::fault_seen("refunded charges", sum.refunded),
        Figure::fault_seen("clients that found nobody and went to the other", sum.found_nobody),
        Figure::at_most("requests that failed", sum.failed, 0),
        Figure::at_most("connections that ended unheard", sum.unheard, CLIENTS as u64 * ended),
        Figure::at_most("units counted too many", counted.saturating_sub(owed), 0),
        Figure::at_most("units counted too few", owed.saturating_sub(counted), 0),
    ]);
}

/// Starts a proxy in front of `upstream`, and returns its address.
fn proxy(policy: &Path, upstream: SocketAddr) -> (Node, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(["proxy", "--listen", "127.0.0.1:0", "--upstream"]);
    command.arg(format!("http://{upstream}")).arg("--policy").arg(policy);
    let node = Node::start(command);
    let response = node.response();
    let (_, at) = response.split_once("listening on http://").expect("where it listens");
    let address = at.split(',').next().unwrap_or_default().to_owned();
    (node, address)
}

/// Starts a service, and returns its address.
fn serving(policy: &Path) -> (Node, String) {
    let node = Node::start(node::command(policy, &["--http", "127.0.0.1:0"]));
    let address = node.listener("http").to_owned();
    (node, address)
}

/// Sends two requests through a proxy. The second one is refunded, because the response is 304.
fn pass(visitor: &mut Visitor) {
    for (known, expected) in [("", 200), ("if-none-match: \"tag\"\r\n", 304)] {
        let fields = format!("authorization: Bearer {TOKEN}\r\n{known}");
        let status = visitor.send("GET / HTTP/1.1", &fields, "").status;
        let sum = visitor.sum();
        sum.charged += 1;
        sum.refunded += u64::from(status == 304);
        sum.failed += u64::from(status != expected);
    }
}

/// Charges twice. The second charge is refunded by its receipt, at any node.
fn charge_and_give_back(visitor: &mut Visitor) {
    let check =
        format!("{{\"limits\":[{{\"name\":\"core\",\"subject\":{{\"token\":\"{TOKEN}\"}}}}]}}");
    let mut receipt = Value::Null;
    for _ in 0..2 {
        let response = post(visitor, "/v1/check", &check);
        let is_admitted = response["admitted"] == true && response["source"] == "store";
        let sum: &mut Sum = visitor.sum();
        sum.charged += 1;
        sum.failed += u64::from(!is_admitted);
        receipt = response["receipt"].clone();
    }
    let response = post(visitor, "/v1/refund", &format!("{{\"receipt\":{receipt}}}"));
    // If the response to the first refund was lost, this refund changes nothing.
    let is_back = response["outcome"] == "refunded" || response["outcome"] == "unchanged";
    let sum = visitor.sum();
    sum.refunded += u64::from(is_back);
    sum.failed += u64::from(!is_back);
}

fn post(visitor: &mut Visitor, path: &str, body: &str) -> Value {
    let fields = "content-type: application/json\r\n";
    let answer = visitor.send(&format!("POST {path} HTTP/1.1"), fields, body);
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// Returns the count in Redis, as reported by a node that has never charged anything.
fn counted(policy: &Path) -> u64 {
    let (_node, address) = serving(policy);
    let mut client = Client::connect(&address).unwrap();
    let body =
        format!("{{\"limits\":[{{\"name\":\"core\",\"subject\":{{\"token\":\"{TOKEN}\"}}}}]}}");
    let length = body.len();
    let head = "POST /v1/peek HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    client.send(format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}")).unwrap();
    let response: Value = serde_json::from_str(&client.answer().unwrap().body).unwrap();
    response["statuses"][0]["used"].as_u64().unwrap_or_else(|| panic!("{response}"))
}
