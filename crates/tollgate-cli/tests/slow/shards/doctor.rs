//! `tollgate doctor` on servers that are healthy, misconfigured, or down.

use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tollgate_conformance::{Figure, assert_held};

use crate::kit::{Latency, LatencyProxy, Server, module_file};
use crate::shards::fleet::Fleet;

#[tokio::test]
async fn a_deployment_is_examined() {
    let mut fleet = Fleet::start(2).await;
    let policy = fleet.policy("policy.yaml", &[0, 1], None);
    let policy = policy.to_str().unwrap();

    let well = doctor(&["--policy", policy, "--json"]);
    assert!(well.status.success(), "{}", text(&well.stderr));
    let response: Value = serde_json::from_slice(&well.stdout).unwrap();
    assert_ne!(response["worst"], "problem", "{response:#}");
    let served = |finding: &&Value| finding["check"] == "serves" && finding["level"] == "ok";
    assert_eq!(response["findings"].as_array().unwrap().iter().filter(served).count(), 2);

    fleet.servers[0].execute(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).await;
    let bad = doctor(&["--policy", policy]);
    assert_eq!(bad.status.code(), Some(1));
    let response = text(&bad.stdout);
    assert!(response.contains("PROBLEM  eviction"), "{response}");
    assert!(response.contains("CONFIG SET maxmemory-policy noeviction"), "{response}");
    assert_eq!(response.matches("PROBLEM").count(), 1, "{response}");

    fleet.servers[0].execute(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    let strict = doctor(&["--policy", policy, "--strict"]);
    let warns = text(&strict.stdout).contains("  warning  ");
    assert_eq!(strict.status.success(), !warns, "{}", text(&strict.stdout));

    fleet.servers[1].kill();
    let gone = doctor(&["--policy", policy]);
    assert_eq!(gone.status.code(), Some(1));
    let response = text(&gone.stdout);
    assert!(
        response.contains("PROBLEM  serves") && response.contains("PROBLEM  reach"),
        "{response}"
    );
    assert!(!response.contains("the same on every node"), "no secret is shown: {response}");
}

#[tokio::test]
async fn two_primaries_of_one_shard_are_a_problem() {
    let (one, other) = (Server::start().await, Server::start().await);
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("policy.yaml");
    let (primary, replica) = (one.url(), other.url());
    let file = format!(
        "secret: {{ file: '{}' }}\nsubjects: {{ address: {{ client_address: {{}} }} }}\n\
         limits: {{ core: {{ quota: 10, window: 1h, per: address }} }}\nrules: [{{ limits: core }}]\n\
         store: {{ redis: {{ shards: {{ a: {{ primary: '{primary}', replicas: '{replica}' }} }} }} }}\n",
        directory.path().join("secret").display()
    );
    std::fs::write(&policy, file).unwrap();
    std::fs::write(directory.path().join("secret"), "the same on every node").unwrap();
    let policy = policy.to_str().unwrap();

    let split = doctor(&["--policy", policy]);
    let response = text(&split.stdout);
    assert_eq!(split.status.code(), Some(1), "{response}");
    assert!(response.contains("PROBLEM  split"), "{response}");
    assert!(response.contains(&format!("nodes charge {primary}")), "{response}");

    other.follow(&one).await;
    let whole = doctor(&["--policy", policy]);
    let response = text(&whole.stdout);
    assert!(whole.status.success() && !response.contains("split"), "{response}");
}

#[tokio::test]
async fn servers_without_the_module_are_a_problem_for_tables() {
    let fleet = Fleet::start(1).await.with_scripting("tables");
    let policy = fleet.policy("policy.yaml", &[0], None);
    let found = doctor(&["--policy", policy.to_str().unwrap()]);
    let response = text(&found.stdout);
    assert_eq!(found.status.code(), Some(1), "{response}");
    let named = format!("PROBLEM  module        {} does not have it", fleet.servers[0].url());
    assert!(response.contains(&named), "{response}");
}

/// Shards may run the step in different forms.
#[tokio::test]
async fn the_form_of_each_shard_is_reported_with_the_savings_of_the_module() {
    let module = Server::start_with(&["--loadmodule", &module_file()]).await;
    let fleet = Fleet::over(vec![Server::start().await, module]);
    for server in &fleet.servers {
        server.execute(&["SET", "tg1:core:{x}", "1", "PX", "600000"]).await;
    }
    let policy = fleet.policy("policy.yaml", &[0, 1], None);
    let found = doctor(&["--policy", policy.to_str().unwrap()]);
    let response = text(&found.stdout);
    for line in [
        "scripting     decisions run as a function: about ",
        "; the server module takes ",
        "scripting     decisions run in the server module: about ",
        "; with tables it takes ",
        " MB instead of ",
    ] {
        assert!(response.contains(line), "{line:?}: {response}");
    }

    let user = ["ACL", "SETUSER", "default", "-tollgate.step", "-tollgate.tight", "-tollgate.look"];
    fleet.servers[1].execute(&user).await;
    let found = doctor(&["--policy", policy.to_str().unwrap()]);
    let response = text(&found.stdout);
    assert!(response.contains("advice   scripting"), "{response}");
    assert!(response.contains("although the server module is loaded"), "{response}");

    let module = Server::start_with(&["--loadmodule", &module_file()]).await;
    let fleet = Fleet::over(vec![module]).with_scripting("tables");
    let policy = fleet.policy("policy.yaml", &[0], None);
    let found = doctor(&["--policy", policy.to_str().unwrap()]);
    let response = text(&found.stdout);
    assert!(response.contains("with tables of subjects: about "), "{response}");
}

/// `tollgate check` cannot know how far the servers are unless it connects to them.
#[tokio::test]
async fn check_warns_of_a_deadline_below_two_round_trips() {
    let fleet = Fleet::start(1).await;
    let one_way = Duration::from_millis(20);
    let far = Latency { one_way, stall_every: 0, stall: Duration::ZERO };
    let network = LatencyProxy::start(fleet.servers[0].port(), far);
    let policy = fleet.policy("policy.yaml", &[0], None);
    let file = std::fs::read_to_string(&policy).unwrap();
    let check = |url: &str, deadline: &str, flags: &[&str]| {
        let file = file.replace(&fleet.servers[0].url(), url);
        std::fs::write(&policy, file.replace("deadline: 10s", deadline)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.arg("check").arg(&policy).args(flags).output().unwrap()
    };
    let advice = "set store.redis.deadline to at least";
    let warned = check(&network.url(), "deadline: 60ms", &["--store", "--strict"]);
    assert_eq!(warned.status.code(), Some(1), "{warned:?}");
    assert!(text(&warned.stderr).contains("and a decision may take 60.0 ms"), "{warned:?}");
    assert!(text(&warned.stderr).contains(advice), "{warned:?}");

    let warned = check(&network.url(), "deadline: 60ms", &["--store", "--json"]);
    assert!(warned.status.success(), "{warned:?}");
    let found: Value = serde_json::from_slice(&warned.stdout).unwrap();
    let hint = |warning: &Value| warning["hint"].as_str().is_some_and(|hint| hint.contains(advice));
    assert!(found["warnings"].as_array().unwrap().iter().any(hint), "{found:#}");

    for (url, flags) in [(fleet.servers[0].url(), &["--store"][..]), (network.url(), &[])] {
        let quiet = check(&url, "deadline: 10s", flags);
        assert!(quiet.status.success() && !text(&quiet.stderr).contains(advice), "{quiet:?}");
    }
}

/// The policies of a server that evict counters when the memory is full. Every counter expires, so
/// policies that evict only keys with an expiry also evict counters.
const DROP_COUNTERS: [&str; 7] = [
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

#[tokio::test]
async fn a_server_that_may_drop_counters_is_a_problem() {
    let fleet = Fleet::start(1).await;
    let policy = fleet.policy("policy.yaml", &[0], None);
    let policy = policy.to_str().unwrap();
    let (mut found, mut missed) = (0, 0);
    for evicts in DROP_COUNTERS {
        fleet.servers[0].execute(&["CONFIG", "SET", "maxmemory-policy", evicts]).await;
        let response = doctor(&["--policy", policy]);
        let is_told = text(&response.stdout).contains("PROBLEM  eviction");
        found += u64::from(is_told);
        missed += u64::from(response.status.success() || !is_told);
    }
    fleet.servers[0].execute(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    let kept = doctor(&["--policy", policy]);
    assert_held(&[
        Figure::fault_seen("ways to drop counters that doctor finds", found),
        Figure::at_most("that it passes", missed, 0),
        Figure::at_most("servers that drop nothing and fail", (!kept.status.success()).into(), 0),
    ]);
}

/// `tollgate doctor ARGUMENTS…`.
pub(crate) fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.arg("doctor").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
