//! Files that are shipped with Tollgate only use metrics that exist.

use std::fs;
use std::path::Path;

use tollgate::observe::Observed;
use tollgate_backend::{BatcherCounts, BatcherStatus, ShardStatus};
use tollgate_redis::{CircuitState, ClusterStatus, GroupStatus, Redirects, StepRuntime};
use tollgate_server::metrics::Exposition;
use tollgate_stores::failover_replay::ReplayCounts;

use super::families::ALL;
use super::{batchers, store};

const BEFORE: &str = "<!-- made of the list in the code -->\n";
const AFTER: &str = "<!-- to here -->";

fn shipped(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the words of `text` that look like a metric, each as the name of its metric family.
fn named(text: &str) -> Vec<String> {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let words = text.split(|char| !is_part(char)).filter(|word| word.starts_with("tollgate_"));
    let family = |word: &str| {
        let stripped = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
        let is_known = |name: &&str| ALL.iter().any(|family| family.name == *name);
        stripped.filter(is_known).unwrap_or(word).to_owned()
    };
    words.map(family).collect()
}

fn assert_known(path: &str) {
    let named = named(&shipped(path));
    assert!(named.len() > 3, "{path} uses hardly any metric: {named:?}");
    for name in named {
        assert!(ALL.iter().any(|family| family.name == name), "{path}: {name} is not a metric");
    }
}

#[test]
fn names_are_reported_once_and_say_their_kind() {
    let mut names: Vec<_> = ALL.iter().map(|family| family.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
    for family in ALL {
        let is_counter = family.kind == tollgate_server::metrics::Kind::Counter;
        assert_eq!(family.name.ends_with("_total"), is_counter, "{}", family.name);
    }
}

#[test]
fn the_alerts_watch_metrics_that_there_are() {
    assert_known("deploy/prometheus/alerts.yaml");
}

#[test]
fn the_dashboard_draws_metrics_that_there_are() {
    let path = "deploy/grafana/tollgate.json";
    assert_known(path);
    let dashboard: serde_json::Value = serde_json::from_str(&shipped(path)).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            assert!(!named(expression).is_empty(), "{}: {expression}", panel["title"]);
        }
    }
}

#[test]
fn the_page_has_every_metric() {
    let mut table = "| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    for family in ALL {
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, labels) = (family.name, family.kind.name(), labels.join(", "));
        table += &format!("| `{name}` | {kind} | {labels} | {} |\n", family.help);
    }
    let page = shipped("docs/metrics.md");
    let message = page.split_once(BEFORE).and_then(|(_, rest)| rest.split_once(AFTER));
    let (message, _) = message.expect("docs/metrics.md has a table between two marks");
    assert_eq!(message, table, "put this between the marks of docs/metrics.md:\n{table}");
}

fn batcher(circuit_state: CircuitState) -> BatcherStatus {
    BatcherStatus {
        address: Some("redis://10.0.0.1:6379".to_owned()),
        circuit_state,
        opened: 0,
        clock_steps: 0,
        round_trip: None,
        counts: BatcherCounts::default(),
        last_error: None,
    }
}

/// A Redis Cluster of two primaries with a replica each. The second primary is in `state`.
fn cluster(state: CircuitState) -> ShardStatus {
    let replica = || batcher(CircuitState::Closed);
    let group = |state| GroupStatus {
        slots: 8_192,
        runs: StepRuntime::Function,
        batchers: vec![batcher(state), replica()],
        clock_offset: None,
        windows_lost: 0,
        last_loss: None,
    };
    let groups = vec![group(CircuitState::Closed), group(state)];
    let redirects = Redirects::default();
    ShardStatus {
        name: "east".into(),
        runs: StepRuntime::Function,
        batchers: groups.iter().flat_map(|group| group.batchers.clone()).collect(),
        clock_offset: None,
        clock_overridden: false,
        claimed_by: Vec::new(),
        windows_lost: 0,
        last_loss: None,
        replayed: ReplayCounts::NOTHING,
        cluster: Some(ClusterStatus { groups, unowned: 0, redirects, last_error: None }),
        took: Observed::NOTHING,
    }
}

#[test]
fn a_cluster_is_up_only_if_every_primary_answers() {
    for (state, up) in [(CircuitState::Closed, 1), (CircuitState::Open, 0)] {
        let mut page = Exposition::default();
        store::shards(&mut page, &[("", cluster(state))]);
        let page = page.into_text();
        let line = format!("tollgate_shard_up{{shard=\"east\"}} {up}");
        assert!(page.lines().any(|it| it == line), "no `{line}` in\n{page}");
    }
}

#[test]
fn every_server_of_a_cluster_has_a_name_of_its_own() {
    let mut page = Exposition::default();
    batchers::write(&mut page, &[("", cluster(CircuitState::Open))]);
    let page = page.into_text();
    for (server, closed) in
        [("primary-1", 1), ("primary-1-replica-1", 1), ("primary-2", 0), ("primary-2-replica-1", 1)]
    {
        let labels = format!("{{shard=\"east\",server=\"{server}\",state=\"closed\"}}");
        let line = format!("tollgate_redis_circuit_breaker{labels} {closed}");
        assert!(page.lines().any(|it| it == line), "no `{line}` in\n{page}");
    }
    let mut alone = cluster(CircuitState::Closed);
    alone.cluster = None;
    alone.batchers.truncate(2);
    let mut page = Exposition::default();
    batchers::write(&mut page, &[("", alone)]);
    let page = page.into_text();
    for server in ["primary", "replica-1"] {
        let line = format!("tollgate_redis_jobs_total{{shard=\"east\",server=\"{server}\"}} 0");
        assert!(page.lines().any(|it| it == line), "no `{line}` in\n{page}");
    }
}
