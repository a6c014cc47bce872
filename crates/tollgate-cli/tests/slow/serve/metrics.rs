//! `GET /metrics`: exact numbers after exact traffic, and a real Prometheus that scrapes them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{Server as KitServer, Version, WallClock};
use crate::support::client::{fetch, send_line};
use crate::support::node::{Folder, Node, PATIENCE, command, refused};

/// A policy with two limits for all clients. The smaller limit has the quota `quota`.
fn policy(quota: u64) -> String {
    format!(
        "limits: {{ all: {{ quota: {quota}, window: 1h }}, wide: {{ quota: 100, window: 1h }} }}\n\
         rules: [ {{ limits: [all, wide] }} ]\n"
    )
}

fn metrics(node: &Node) -> String {
    let answer = fetch(node.listener("admin"), "GET", "/metrics", None);
    assert_eq!(answer.status, 200);
    answer.body
}

/// Charges the limit `all` this often.
fn check(node: &Node, times: usize) {
    (0..times).for_each(|_| drop(fetch(node.listener("http"), "POST", "/v1/check", None)));
}

#[track_caller]
fn assert_lines(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|response| response == *line), "no `{line}` in\n{page}");
    }
}

#[test]
fn numbers_are_exact_and_outlive_another_policy() {
    let folder = Folder::with(&policy(3));
    let node = Node::open(&folder.policy());
    check(&node, 5);
    let page = metrics(&node);
    assert_lines(
        &page,
        &[
            "# TYPE tollgate_decisions_total counter",
            "tollgate_decisions_total{limit=\"all\",decision=\"admitted\",source=\"store\"} 3",
            "tollgate_decisions_total{limit=\"all\",decision=\"refused\",source=\"store\"} 2",
            "tollgate_decisions_total{limit=\"wide\",decision=\"admitted\",source=\"store\"} 0",
            "tollgate_refusals_total{limit=\"all\",source=\"store\"} 2",
            "tollgate_refusals_total{limit=\"wide\",source=\"store\"} 0",
            "tollgate_requests_total{decision=\"admitted\",source=\"store\"} 3",
            "tollgate_requests_total{decision=\"refused\",source=\"store\"} 2",
            "tollgate_listener_duration_seconds_count{listener=\"http\"} 5",
            "tollgate_listener_duration_seconds_count{listener=\"resp\"} 0",
            "tollgate_listener_connections{listener=\"admin\"} 1",
            "tollgate_memory_entries 1",
            "tollgate_policy_reloads_total{result=\"applied\"} 0",
            "tollgate_policy_file_rejected 0",
        ],
    );
    folder.write("policy.yaml", &policy(10).replace("wide", "broad"));
    node.signal("-HUP");
    node.wait_for_log("the policy was reloaded");
    check(&node, 1);
    assert_eq!(send_line(node.listener("resp"), &["CL.THROTTLE k 5 5 60"]), ["*5"]);
    assert_lines(
        &metrics(&node),
        &[
            "tollgate_decisions_total{limit=\"all\",decision=\"admitted\",source=\"store\"} 4",
            "tollgate_decisions_total{limit=\"wide\",decision=\"admitted\",source=\"store\"} 0",
            "tollgate_decisions_total{limit=\"broad\",decision=\"admitted\",source=\"store\"} 0",
            "tollgate_decisions_total{limit=\"other\",decision=\"admitted\",source=\"store\"} 1",
            "tollgate_listener_duration_seconds_count{listener=\"resp\"} 1",
            "tollgate_policy_reloads_total{result=\"applied\"} 1",
        ],
    );
}

#[test]
fn a_proxy_reports_a_shard_that_is_not_there() {
    // Nothing listens at port 1.
    let text = "limits: { all: { quota: 3, window: 1h } }\n\
                rules: [ { name: lost, limits: all, on_failure: deny } ]\n\
                store: { redis: { shards: { east: { primary: \"redis://127.0.0.1:1\" } } } }\n";
    let folder = Folder::with(text);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(["proxy", "--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:0"]);
    command.args(["--admin", "127.0.0.1:0", "--policy"]).arg(folder.policy());
    command.env("TOLLGATE_SECRET", "a-secret-of-the-tests");
    let proxy = Node::start(command);
    let response = proxy.response();
    let (_, rest) = response.split_once("listening on http://").unwrap();
    let address = rest.split(',').next().unwrap();
    for _ in 0..3 {
        assert_eq!(fetch(address, "GET", "/", None).status, 503);
    }
    let page = metrics(&proxy);
    assert_lines(
        &page,
        &[
            "tollgate_listener_connections_max{listener=\"proxy\"} 10000",
            "tollgate_proxy_connections_closed_total{reason=\"address_limit\"} 0",
            "tollgate_proxy_connections_closed_total{reason=\"evicted\"} 0",
            "tollgate_shard_up{shard=\"east\"} 0",
            "tollgate_store_clock_ready 1",
            "tollgate_redis_circuit_breaker{shard=\"east\",server=\"primary\",state=\"closed\"} 0",
            "tollgate_requests_total{decision=\"refused\",source=\"failure\"} 3",
            "tollgate_store_fallback_decisions_total 3",
            "tollgate_shard_duration_seconds_count{shard=\"east\"} 3",
        ],
    );
    let response = "tollgate_degraded_decisions_total{rule=\"lost\",source=\"failure\",error=";
    assert!(page.lines().any(|line| line.starts_with(response) && line.ends_with("} 3")), "{page}");
    assert!(page.contains("\ntollgate_listener_connections{listener=\"proxy\"} "), "{page}");
    assert!(!page.contains("tollgate_memory_"), "its store is not in this process\n{page}");
}

/// With `clock: store` the server's clock always decides, so its difference does not matter.
#[tokio::test]
async fn a_node_whose_clock_is_wrong_reports_that_it_is_not_ready() {
    let clock = WallClock::new();
    let server = KitServer::start_by(Version::default(), &clock, &[]).await;
    clock.set(60_000, &server).await;
    for (setting, ready, status) in [("", 0, 503), (", clock: store", 1, 200)] {
        let url = server.url();
        let store = format!("deadline: 10s{setting}, shards: {{ east: {{ primary: {url:?} }} }}");
        let text = format!("{}store: {{ redis: {{ {store} }} }}\n", policy(3));
        let folder = Folder::with(&text);
        let admin = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let mut serve = command(&folder.policy(), &admin);
        serve.env("TOLLGATE_SECRET", "a-secret-of-the-tests");
        let node = Node::start(serve);
        let page = metrics(&node);
        assert_lines(&page, &[&format!("tollgate_store_clock_ready {ready}")]);
        let response = fetch(node.listener("admin"), "GET", "/readyz", None);
        assert_eq!(response.status, status, "{}", response.body);
    }
}

#[test]
fn names_that_would_end_their_quotes_are_no_names() {
    for text in [
        policy(3).replace("wide", "'a\"} 9'"),
        policy(3).replace("limits: [all", "name: 'a\"} 9', limits: [all"),
    ] {
        let response = refused(&Folder::with(&text).policy(), &["--http", "127.0.0.1:0"]);
        assert!(response.contains("is not a valid name"), "{response}");
    }
}

#[test]
fn only_the_listener_for_administrators_reports() {
    let folder = Folder::with(&policy(3));
    let node = Node::open(&folder.policy());
    assert_eq!(fetch(node.listener("http"), "GET", "/metrics", None).status, 403);
}

#[test]
fn promtool_finds_nothing_to_mend() {
    let folder = Folder::with(&policy(3));
    let node = Node::open(&folder.policy());
    check(&node, 4);
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(metrics(&node).as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn promtool_reads_the_rules_and_the_configuration() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus");
    for (what, file) in [("rules", "alerts.yaml"), ("config", "prometheus.yaml")] {
        let output = Command::new("promtool")
            .args(["check", what, &format!("{folder}/{file}")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn alerts_fire_for_a_jump_of_refusals_a_slow_p99_and_a_node_that_is_down() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus/alerts.test.yaml");
    let output = Command::new("promtool").args(["test", "rules", file]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn prometheus_scrapes_it_and_answers() {
    let folder = Folder::with(&policy(3));
    let node = Node::open(&folder.policy());
    check(&node, 5);
    let prometheus = Prometheus::of(node.listener("admin"));
    let query = "/api/v1/query?query=tollgate_decisions_total%7Bdecision%3D%22refused%22%2Climit%3D%22all%22%7D";
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = fetch(&prometheus.address, "GET", query, None);
        let response: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let value = &response["data"]["result"][0]["value"][1];
        if !value.is_null() {
            assert_eq!(value, "2", "{response}");
            return;
        }
        assert!(Instant::now() < deadline, "{}", answer.body);
        thread::sleep(Duration::from_millis(50));
    }
}

/// A real Prometheus that scrapes one node. The process is stopped when this value is dropped.
struct Prometheus {
    child: Child,
    address: String,
    _folder: TempDir,
}

impl Prometheus {
    fn of(target: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let config = folder.path().join("prometheus.yaml");
        let text = format!(
            "scrape_configs: [ {{ job_name: tollgate, scrape_interval: 200ms, \
             scrape_timeout: 200ms, static_configs: [ {{ targets: [\"{target}\"] }} ] }} ]\n"
        );
        std::fs::write(&config, text).unwrap();
        let mut child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| {
                let (_, rest) = line.split_once("msg=\"Listening on\" address=")?;
                rest.split_whitespace().next().map(str::to_owned)
            })
            .expect("Prometheus tells where it listens");
        // The further output of the process must be read, or the process would block.
        thread::spawn(move || lines.for_each(drop));
        Self { child, address, _folder: folder }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
