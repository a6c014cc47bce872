//! The output of a proxy at its start, and its start without a store.

use crate::redis::fleet::{Fleet, SHARDS};
use crate::support::world::Proxy;

const TEXT: &str = "
limits: { core: { quota: 10, window: 1h, per: token } }
rules: [{ limits: core }]
answers: { headers: github }";

#[tokio::test]
async fn it_reports_each_shard_and_then_that_it_listens() {
    let fleet = Fleet::start().await;
    let policy = fleet.policy(TEXT, "deadline: 10s, scripting: script");
    let mut proxy = Proxy::spawn("http://127.0.0.1:9", &policy);
    for (shard, primary) in SHARDS.iter().zip(&fleet.primaries) {
        let response = proxy.wait_for_log(&format!("connected to {}", primary.url()));
        assert!(response.contains("INFO") && response.contains("as a script"), "{response}");
        assert!(response.contains(&format!("shard=\"{shard}\"")), "{response}");
    }
    let response = proxy.listens();
    assert!(response.contains("counters in 2 shards of Redis"), "{response}");
}

#[tokio::test]
async fn servers_that_start_after_it_are_found() {
    let mut fleet = Fleet::start().await;
    for server in fleet.primaries.iter_mut().chain(&mut fleet.replicas) {
        server.kill();
    }
    let proxy = Proxy::start(&fleet.policy(TEXT, "deadline: 10s"));
    let token = "authorization: Bearer early";
    assert_eq!(proxy.get("/", &[token]).field("x-ratelimit-used"), "1");
    for server in &mut fleet.primaries {
        server.start_again(&[]);
    }
    for _ in SHARDS {
        proxy.wait_for_log("connected to");
    }
    assert_eq!(proxy.get("/", &[token]).status, 200);
    let keys = fleet.keys().await;
    assert_eq!(keys[0] + keys[1], 1, "it counts in the store now");
}
