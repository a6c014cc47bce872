//! Servers of both kinds, policies for them, and clients of processes with these policies.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::kit::Server as Redis;
use crate::memcached::Server as Memcached;
use crate::support::client::{Answer, Client, fetch};
use crate::support::node::{Folder, Node, command};

/// A setting with a deadline that every decision meets even on a busy machine, so counts stay
/// exact.
const DEADLINE: &str = "deadline: 10s";

/// A directory with policies, and the secret that they share.
pub(crate) struct Site(Folder);

impl Site {
    pub(crate) fn new() -> Self {
        let folder = Folder::with("");
        folder.write("secret", "the same on every node");
        Self(folder)
    }

    /// Writes a policy with the store `store` and with the limit `core`, which has a counter for
    /// each token.
    pub(crate) fn policy(&self, name: &str, quota: u64, store: &str) -> PathBuf {
        self.policy_of(name, &format!("quota: {quota}, window: 1h"), store)
    }

    /// Writes a policy like [`policy`](Self::policy), in which `core` has the settings `limit`.
    pub(crate) fn policy_of(&self, name: &str, limit: &str, store: &str) -> PathBuf {
        let secret = self.0.path("secret");
        let text = format!(
            "subjects: {{ token: {{ header: authorization }} }}\n\
             limits: {{ core: {{ {limit}, per: token }} }}\n\
             rules: [ {{ limits: core }} ]\n\
             secret: {{ file: \"{}\" }}\n\
             store: {store}\n",
            secret.display(),
        );
        self.0.write(name, &text);
        self.0.path(name)
    }
}

/// Returns the settings of one memcached server.
pub(crate) fn in_memcached(server: &Memcached) -> String {
    format!("{{ memcached: {{ servers: ['{}'], {DEADLINE} }} }}", server.address())
}

/// Returns the settings of one shard in Redis, with the name `north` for every server.
pub(crate) fn in_redis(server: &Redis) -> String {
    at(&server.url(), "auto")
}

/// Returns the settings of one shard at `url`, in which the step runs in the form `scripting`.
pub(crate) fn at(url: &str, scripting: &str) -> String {
    format!(
        "{{ redis: {{ shards: {{ north: {{ primary: \"{url}\" }} }}, scripting: {scripting}, \
         {DEADLINE} }} }}"
    )
}

/// Returns the settings of a rollout.
pub(crate) fn rollout(percent: u8, from: &str, to: &str) -> String {
    format!("{{ rollout: {{ percent: {percent}%, from: {from}, to: {to} }} }}")
}

/// Starts a process with the policy at `path`.
pub(crate) fn node(path: &Path) -> Node {
    let any = "127.0.0.1:0";
    Node::start(command(path, &["--http", any, "--admin", any]))
}

/// The result of one charge, as the response reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) is_admitted: bool,
    pub(crate) used: u64,
    /// The reset, in seconds since the epoch.
    pub(crate) reset: u64,
}

/// Charges a token one unit. The decision is the store's, or a recently cached one.
pub(crate) fn charge(client: &mut Client, token: &str) -> Told {
    let body =
        format!("{{\"limits\":[{{\"name\":\"core\",\"subject\":{{\"token\":\"{token}\"}}}}]}}");
    let Answer { status, body, .. } = client.exchange("POST", "/v1/check", &body);
    let response: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200, "{body}");
    assert!(matches!(response["source"].as_str(), Some("store" | "deny_cache")), "{body}");
    let status = &response["statuses"][0];
    Told {
        is_admitted: response["admitted"].as_bool().unwrap(),
        used: status["used"].as_u64().unwrap(),
        reset: status["reset"].as_u64().unwrap(),
    }
}

/// Sets a node's rollout as an administrator, and returns the previous percentage.
pub(crate) fn turn(node: &Node, percent: u8) -> u64 {
    let mut client = Client::connect(node.listener("admin")).unwrap();
    let body = format!("{{\"percent\": {percent}}}");
    let answer = client.exchange("PUT", "/v1/rollout", &body);
    let response: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((answer.status, &response["percent"]), (200, &percent.into()), "{}", answer.body);
    response["before"].as_u64().unwrap()
}

/// Returns the status that a node reports.
pub(crate) fn status(node: &Node) -> Value {
    serde_json::from_str(&fetch(node.listener("admin"), "GET", "/v1/status", None).body).unwrap()
}
