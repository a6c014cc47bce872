//! Replacing the policy file while the process serves.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::client::{Client, fetch};
use crate::support::node::{Folder, Node, PATIENCE, command};

/// Returns a policy with one limit of `quota` for all clients.
fn policy(quota: u64) -> String {
    format!(
        "limits: {{ all: {{ quota: {quota}, window: 1h }} }}\n\
         rules: [ {{ limits: all }} ]\nanswers: {{ headers: github }}\n"
    )
}

fn check(node: &Node) -> Value {
    let answer = fetch(node.listener("http"), "POST", "/v1/check", None);
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

/// Returns the status of the only limit: capacity, used, remaining.
fn status_of(decision: &Value) -> [u64; 3] {
    let status = &decision["statuses"][0];
    ["limit", "used", "remaining"].map(|key| status[key].as_u64().unwrap())
}

fn reloads(node: &Node) -> Value {
    let answer = fetch(node.listener("admin"), "GET", "/v1/status", None);
    serde_json::from_str::<Value>(&answer.body).unwrap()["reloads"].take()
}

#[test]
fn a_quota_below_what_is_used_leaves_nothing_and_the_window_runs_on() {
    let folder = Folder::with(&policy(10));
    let node = Node::open(&folder.policy());
    let before = check(&node);
    (0..5).for_each(|_| drop(check(&node)));
    folder.write("policy.yaml", &policy(3));
    node.signal("-HUP");
    node.wait_for_log("the policy was reloaded");
    let after = check(&node);
    assert_eq!((status_of(&before), status_of(&after)), ([10, 1, 9], [3, 6, 0]));
    assert_eq!(after["admitted"], false);
    assert_eq!(after["statuses"][0]["reset"], before["statuses"][0]["reset"]);
    assert_ne!(after["policy"], before["policy"]);
    assert_eq!(reloads(&node)["applied"], 1);
}

#[test]
fn the_log_is_written_for_programs_where_they_read_it() {
    let folder = Folder::with(&policy(10));
    let any = "127.0.0.1:0";
    let node = Node::start(command(&folder.policy(), &["--http", any, "--log", "json"]));
    folder.write("policy.yaml", &policy(3));
    node.signal("-HUP");
    let line: Value = serde_json::from_str(&node.wait_for_log("the policy was reloaded")).unwrap();
    assert_eq!((&line["level"], &line["limits"]), (&"INFO".into(), &1.into()), "{line}");
    assert!(line["timestamp"].is_string() && line["version"].is_string(), "{line}");
    assert!(!node.listener("http").is_empty(), "the node reports its listeners");
    node.signal("-TERM");
    node.wait_for_log("every request in flight has ended");
    for line in node.response().lines() {
        let line: Result<Value, _> = serde_json::from_str(line);
        assert!(line.is_ok_and(|line| line["level"].is_string()), "{}", node.response());
    }
}

#[test]
fn an_administrator_has_it_read_again_and_receives_what_is_wrong() {
    let folder = Folder::with(&policy(10));
    let node = Node::open(&folder.policy());
    let reload = || fetch(node.listener("admin"), "POST", "/v1/policy/reload", None);
    let response = reload();
    assert_eq!(response.status, 200);
    assert!(response.body.contains(r#""replaced":false"#), "{}", response.body);
    folder.write("policy.yaml", &policy(10).replace("1h", "1 hour"));
    let response = reload();
    assert_eq!(response.status, 409, "{}", response.body);
    assert!(response.body.contains("policy.yaml:1:"), "{}", response.body);
    folder.write("policy.yaml", &policy(20));
    let response = reload();
    assert!(response.body.contains(r#""replaced":true"#), "{}", response.body);
    let after = check(&node);
    assert!(response.body.contains(after["policy"].as_str().unwrap()), "{}", response.body);
    assert_eq!(status_of(&after), [20, 1, 19]);
    assert_eq!(fetch(node.listener("http"), "POST", "/v1/policy/reload", None).status, 403);
}

#[test]
fn a_broken_file_changes_nothing_and_is_reported_with_its_place() {
    let folder = Folder::with(&policy(10));
    let node = Node::open(&folder.policy());
    let before = check(&node)["policy"].clone();
    folder.write("policy.yaml", &policy(10).replace("1h", "1 hour"));
    node.signal("-HUP");
    node.wait_for_log("the previous one stays in force");
    let response = reloads(&node);
    assert_eq!((&response["applied"], &response["rejected"]), (&0.into(), &1.into()));
    let reason = response["rejection"]["reason"].as_str().unwrap();
    assert!(reason.contains("policy.yaml:1:"), "{reason}");
    assert_eq!(check(&node)["policy"], before);
    // If a part needs a restart, nothing is changed: the quota stays too.
    folder
        .write("policy.yaml", &format!("{}store: {{ memory: {{ max_entries: 9 }} }}\n", policy(5)));
    node.signal("-HUP");
    node.wait_for_log("`store.memory` cannot change while this process runs");
    let after = check(&node);
    assert_eq!((&after["policy"], status_of(&after)), (&before, [10, 3, 7]));
    // The file is the active policy again: there is no error any more, and nothing was changed.
    folder.write("policy.yaml", &policy(10));
    node.signal("-HUP");
    until_reloads(&node, |response| response["rejection"].is_null());
    assert_eq!(reloads(&node)["applied"], 0);
}

/// Waits until `is_so` is true for the reloads in the node's status.
fn until_reloads(node: &Node, is_so: impl Fn(&Value) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so(&reloads(node)) {
        assert!(Instant::now() < deadline, "{}", reloads(node));
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_an_administrator_had_read_is_put_back_by_the_file() {
    let folder = Folder::with(&policy(10));
    let node = Node::open(&folder.policy());
    // A changed file is loaded after two equal reads.
    thread::sleep(Duration::from_millis(1_200));
    folder.write("policy.yaml", &policy(20));
    assert_eq!(fetch(node.listener("admin"), "POST", "/v1/policy/reload", None).status, 200);
    assert_eq!(reloads(&node)["applied"], 1);
    folder.write("policy.yaml", &policy(10));
    until_reloads(&node, |response| response["applied"] == 2);
    assert_eq!(status_of(&check(&node)), [10, 1, 9]);
}

#[test]
fn a_file_that_is_gone_is_reported_and_is_in_force_again_once_it_is_back() {
    let folder = Folder::with(&policy(10));
    let node = Node::open(&folder.policy());
    let before = check(&node)["policy"].clone();
    let away = folder.path("away.yaml");
    for requested in [false, true] {
        fs::rename(folder.policy(), &away).unwrap();
        if requested {
            node.signal("-HUP");
        }
        until_reloads(&node, |response| !response["rejection"].is_null());
        fs::rename(&away, folder.policy()).unwrap();
        until_reloads(&node, |response| response["rejection"].is_null());
    }
    assert_eq!((&check(&node)["policy"], &reloads(&node)["applied"]), (&before, &0.into()));
}

#[test]
fn an_override_can_be_lifted_when_the_policy_has_its_name_no_more() {
    let text = |limit: &str, user: &str| {
        format!(
            "subjects: {{ {user}: {{ header: x-user }}, host: {{ header: x-host }} }}\n\
             limits: {{ {limit}: {{ quota: 10, window: 1h, per: [{user}, host] }} }}\n\
             rules: [ {{ name: {limit}, limits: {limit} }} ]\n"
        )
    };
    let folder = Folder::with(&text("calls", "user"));
    let node = Node::open(&folder.policy());
    let admin = node.listener("admin");
    let all = [
        (
            r#""limit":"calls","subject":{"user":"bob","host":"a"}"#,
            "subject[user]=bob&subject[host]=a&limit=calls",
        ),
        (r#""limit":"calls","group":{"user":"bob"}"#, "group[user]=bob&limit=calls"),
        (r#""limit":"calls","everybody":true"#, "limit=calls&everybody=true"),
        (r#""rule":"calls""#, "rule=calls"),
    ];
    for (whom, _) in all {
        let described = format!(r#"{{{whom},"counted":true,"expires_in":"1h","reason":"a test"}}"#);
        let head =
            "PUT /v1/overrides HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        let mut client = Client::connect(admin).unwrap();
        client
            .send(format!("{head}\r\ncontent-length: {}\r\n\r\n{described}", described.len()))
            .unwrap();
        let response = client.answer().unwrap();
        assert_eq!(response.status, 200, "{}", response.body);
    }
    folder.write("policy.yaml", &text("requests", "name"));
    assert_eq!(fetch(admin, "POST", "/v1/policy/reload", None).status, 200);
    assert_eq!(reloads(&node)["applied"], 1);
    let mistyped = fetch(admin, "DELETE", "/v1/overrides?limit=call&everybody=true", None);
    assert_eq!(mistyped.status, 422, "{}", mistyped.body);
    for (whom, query) in all {
        let response = fetch(admin, "DELETE", &format!("/v1/overrides?{query}"), None);
        assert!(response.body.contains(r#""counted":true"#), "{whom}: {}", response.body);
    }
    let left = fetch(admin, "GET", "/v1/overrides", None);
    assert!(left.body.contains(r#""overrides":[]"#), "{}", left.body);
}

#[test]
fn who_may_come_to_the_dashboard_takes_a_restart() {
    let folder = Folder::with(&policy(10));
    let node = Node::open(&folder.policy());
    let hosts = "serve: { dashboard: { hosts: [admin.example] } }\n";
    folder.write("policy.yaml", &format!("{}{hosts}", policy(20)));
    node.wait_for_log("`serve.dashboard` cannot change while this process runs");
    assert_eq!(status_of(&check(&node)), [10, 1, 9]);
}

#[test]
fn a_file_that_is_replaced_by_a_rename_is_seen() {
    let folder = Folder::with(&policy(10));
    let node = Node::open(&folder.policy());
    folder.write("next.yaml", &policy(20));
    fs::rename(folder.path("next.yaml"), folder.policy()).unwrap();
    node.wait_for_log("the policy was reloaded");
    assert_eq!(status_of(&check(&node)), [20, 1, 19]);
}

#[test]
fn a_link_that_is_led_elsewhere_is_seen() {
    // As Kubernetes mounts a ConfigMap: the file is a link through a link to a directory.
    let folder = Folder::with("");
    for (name, quota) in [("first", 10), ("second", 20)] {
        fs::create_dir(folder.path(name)).unwrap();
        folder.write(&format!("{name}/policy.yaml"), &policy(quota));
    }
    fs::remove_file(folder.policy()).unwrap();
    symlink("first", folder.path("..data")).unwrap();
    symlink("..data/policy.yaml", folder.policy()).unwrap();
    let node = Node::open(&folder.policy());
    assert_eq!(status_of(&check(&node)), [10, 1, 9]);
    symlink("second", folder.path("..data_tmp")).unwrap();
    fs::rename(folder.path("..data_tmp"), folder.path("..data")).unwrap();
    node.wait_for_log("the policy was reloaded");
    assert_eq!(status_of(&check(&node)), [20, 2, 18]);
}

#[test]
fn reloads_every_few_milliseconds_lose_no_request_and_mix_nothing() {
    const QUOTAS: [u64; 4] = [1_000_000, 2_000_000, 3_000_000, 4_000_000];
    const ROUNDS: usize = 200;
    let folder = Folder::with(&policy(QUOTAS[0]));
    let node = Node::open(&folder.policy());
    let versions = QUOTAS.map(|quota| {
        let loaded = tollgate_policy::parse("policy.yaml", &policy(quota)).unwrap();
        (loaded.version, quota)
    });
    let is_over = AtomicBool::new(false);
    let admitted: u64 = thread::scope(|scope| {
        let clients = [(); 3].map(|()| {
            scope.spawn(|| {
                let (mut client, mut admitted) =
                    (Client::connect(node.listener("http")).unwrap(), 0);
                while !is_over.load(Ordering::Relaxed) {
                    let answer = client.check().unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    let decision: Value = serde_json::from_str(&answer.body).unwrap();
                    let [quota, used, remaining] = status_of(&decision);
                    let version = decision["policy"].as_str().unwrap();
                    let of = versions.iter().find(|(known, _)| known == version).unwrap().1;
                    assert_eq!((quota, remaining), (of, of - used), "{decision}");
                    assert_eq!(decision["headers"]["x-ratelimit-limit"], of.to_string());
                    admitted += 1;
                }
                admitted
            })
        });
        for round in 0..ROUNDS {
            folder.write("next.yaml", &policy(QUOTAS[round % QUOTAS.len()]));
            fs::rename(folder.path("next.yaml"), folder.policy()).unwrap();
            node.signal("-HUP");
            thread::sleep(Duration::from_millis(5));
        }
        is_over.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(status_of(&check(&node))[1], admitted + 1, "each was counted once, in one window");
    let response = reloads(&node);
    assert!(response["applied"].as_u64().unwrap() > 1, "{response}");
    assert_eq!(response["rejected"], 0);
}

#[test]
fn a_change_of_an_included_file_reloads_the_policy() {
    let folder = Folder::with("include: limits.yaml\nrules: [ { limits: all } ]\n");
    folder.write("limits.yaml", "limits: { all: { quota: 10, window: 1h } }\n");
    let node = Node::open(&folder.policy());
    assert_eq!(status_of(&check(&node)), [10, 1, 9]);
    folder.write("limits.yaml", "limits: { all: { quota: 20, window: 1h, per: ann } }\n");
    let refused = node.wait_for_log("unknown subject");
    assert!(refused.contains("limits.yaml:1:46"), "{refused}");
    folder.write("limits.yaml", "limits: { all: { quota: 4, window: 1h } }\n");
    node.wait_for_log("the policy was reloaded");
    assert_eq!(status_of(&check(&node)), [4, 2, 2]);
}
