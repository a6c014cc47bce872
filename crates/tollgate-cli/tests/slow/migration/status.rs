//! The status of servers and of each of two stores in `/v1/status`.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kit::Server as Redis;
use crate::memcached::Server as Memcached;
use crate::migration::site::{Site, charge, in_memcached, in_redis, node, rollout, status, turn};
use crate::support::client::Client;
use crate::support::node::{Node, PATIENCE};

/// Queries the status until `is_so` is true.
fn response(node: &Node, is_so: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let response = status(node);
        if is_so(&response) {
            return response;
        }
        assert!(Instant::now() < deadline, "{response}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn servers_of_memcached_report_their_status_and_what_they_lost() {
    let mut server = Memcached::start();
    let node = node(&Site::new().policy("policy.yaml", 5, &in_memcached(&server)));
    let mut client = Client::connect(node.listener("http")).unwrap();
    assert!(charge(&mut client, "a").is_admitted);
    let up = status(&node);
    let address = server.address().to_string();
    assert_eq!((&up["store"], &up["map"]), (&"memcached".into(), &Value::Null), "{up}");
    let [one] = &up["servers"].as_array().unwrap()[..] else { panic!("{up}") };
    assert_eq!((&one["name"], &one["side"]), (&address.into(), &Value::Null), "{up}");
    assert_eq!((&one["connections"], &one["restarts"]), (&2.into(), &0.into()), "{up}");
    assert_eq!(
        (&up["counts"]["fallback_decisions"], &up["shards"]),
        (&0.into(), &Value::Array(vec![]))
    );
    response(&node, |response| response["servers"][0]["connected"] == 2);
    server.restart();
    let again = response(&node, |response| response["servers"][0]["restarts"] == 1);
    assert!(again["servers"][0]["last_error"].is_string(), "{again}");
}

#[tokio::test]
async fn each_of_two_stores_in_redis_shows_its_own_map() {
    let (old, new) = (Redis::start().await, Redis::start().await);
    let store = rollout(0, &in_redis(&old), &in_redis(&new));
    let node = node(&Site::new().policy("policy.yaml", 5, &store));
    let response =
        response(&node, |response| response["counts"]["to"]["map"]["nodes"]["current"] == 1);
    assert_eq!(
        (&response["store"], &response["map"]),
        (&"rollout".into(), &Value::Null),
        "{response}"
    );
    for (side, server) in ["from", "to"].into_iter().zip([&old, &new]) {
        let map = &response["counts"][side]["map"];
        assert!(map["version"].is_string() && map["rebalance"].is_null(), "{side}: {response}");
        let shards = response["shards"].as_array().unwrap();
        let shard = shards.iter().find(|shard| shard["side"] == side).unwrap();
        assert_eq!((&shard["name"], &shard["primary"]), (&"north".into(), &server.url().into()));
    }
}

#[tokio::test]
async fn both_kinds_at_once_are_distinguished() {
    let (old, new) = (Memcached::start(), Redis::start().await);
    let store = rollout(0, &in_memcached(&old), &in_redis(&new));
    let node = node(&Site::new().policy("policy.yaml", 5, &store));
    turn(&node, 100);
    let response = status(&node);
    assert_eq!(response["counts"]["percent"], 100, "{response}");
    assert_eq!(response["servers"][0]["side"], "from", "{response}");
    assert_eq!(response["shards"][0]["side"], "to", "{response}");
    assert!(response["counts"]["from"]["map"].is_null(), "{response}");
    assert!(response["counts"]["to"]["map"]["version"].is_string(), "{response}");
}
