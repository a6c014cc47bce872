//! The dashboard in a real browser: every view and action, code that must not run, and clients that
//! are not allowed.

mod actions;
mod browser;
mod hostile;
mod keyboard;
mod names;
mod operators;
mod overrides;
mod phone;
mod pictures;
mod tenants;
mod views;

use browser::{Browser, Page};

use crate::support::node::{Folder, Node};

/// Limits by an address and by a name that clients choose.
const POLICY: &str = "
subjects: { address: { client_address: {} }, user: { header: x-user } }
limits:
  many: { quota: 1000, window: 1h, per: address }
  few: { quota: 3, window: 1h, per: user }
rules: [ { name: named, match: { has: user }, limits: [few, many] }, { name: all, limits: many } ]
";

/// Starts a node with [`POLICY`] and `more`, and with listeners for programs and administrators.
fn node(more: &str) -> (Folder, Node) {
    let folder = Folder::with(&format!("{POLICY}{more}"));
    let node = Node::open(&folder.policy());
    (folder, node)
}

/// Opens the dashboard of `node` at `view`.
fn open(browser: &mut Browser, node: &Node, view: &str) -> Page {
    browser.open(&address(node, view))
}

fn address(node: &Node, view: &str) -> String {
    format!("http://{}/dashboard/#/{view}", node.listener("admin"))
}

/// Charges `limit` for `subject` this often.
fn charge(node: &Node, limit: &str, subject: (&str, &str), times: usize) {
    let (name, value) = (subject.0, serde_json::to_string(subject.1).unwrap());
    let body = format!(r#"{{"limits":[{{"name":"{limit}","subject":{{"{name}":{value}}}}}]}}"#);
    for _ in 0..times {
        decide(node, &body);
    }
}

/// Sends a charge with this `body`.
fn decide(node: &Node, body: &str) {
    let mut client = crate::support::client::Client::connect(node.listener("http")).unwrap();
    assert_eq!(client.exchange("POST", "/v1/check", body).status, 200);
}
