//! `/metrics` while limits move: labels only from the configuration, and no duplicate series.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::kit::Server as Redis;
use crate::memcached::Server as Memcached;
use crate::migration::site::{Site, charge, in_memcached, in_redis, node, rollout, turn};
use crate::support::client::{Client, fetch};
use crate::support::node::Node;

/// Returns the page, which Prometheus's own parser accepts.
fn page(node: &Node) -> String {
    let page = fetch(node.listener("admin"), "GET", "/metrics", None).body;
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut series = BTreeSet::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, _) = line.rsplit_once(' ').unwrap();
        assert!(series.insert(name), "{name} is told twice in\n{page}");
    }
    page
}

#[track_caller]
fn assert_lines(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|response| response == *line), "no `{line}` in\n{page}");
    }
}

#[tokio::test]
async fn a_rollout_reports_its_percentage_and_both_stores() {
    let (old, new) = (Memcached::start(), Redis::start().await);
    let store = rollout(30, &in_memcached(&old), &in_redis(&new));
    let node = node(&Site::new().policy("policy.yaml", 5, &store));
    assert_lines(&page(&node), &["tollgate_rollout_percent 30"]);
    turn(&node, 0);
    let mut client = Client::connect(node.listener("http")).unwrap();
    charge(&mut client, "a");
    turn(&node, 100);
    charge(&mut client, "a");
    let page = page(&node);
    let server = old.address().to_string();
    assert_lines(
        &page,
        &[
            "tollgate_rollout_percent 100",
            "tollgate_rollout_transferred_total 1",
            "tollgate_rollout_transfer_failures_total 0",
            "tollgate_rollout_refund_failures_total 0",
            &format!("tollgate_memcached_connections_max{{side=\"from\",server=\"{server}\"}} 2"),
            &format!("tollgate_memcached_restarts_total{{side=\"from\",server=\"{server}\"}} 0"),
            "tollgate_shard_up{side=\"to\",shard=\"north\"} 1",
            "tollgate_store_fallback_decisions_total{side=\"from\"} 0",
            "tollgate_store_fallback_decisions_total{side=\"to\"} 0",
        ],
    );
    assert!(page.contains("tollgate_shard_map_info{side=\"to\",version=\""), "{page}");
    assert!(
        !page.contains("tollgate_shard_map_info{side=\"from\""),
        "memcached has no map\n{page}"
    );
}

#[tokio::test]
async fn shards_of_one_name_in_two_stores_are_two_series() {
    let (old, new) = (Redis::start().await, Redis::start().await);
    let store = rollout(30, &in_redis(&old), &in_redis(&new));
    let node = node(&Site::new().policy("policy.yaml", 5, &store));
    let page = page(&node);
    for side in ["from", "to"] {
        let up = format!("tollgate_shard_up{{side=\"{side}\",shard=\"north\"}} 1");
        assert_lines(&page, &[&up]);
        let info = format!("tollgate_shard_map_info{{side=\"{side}\",version=\"");
        assert!(page.contains(&info), "{page}");
    }
}
