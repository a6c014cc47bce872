//! `deploy/helm/tollgate`: linted and rendered by Helm, and run with the rendered settings.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::packaging::files::{shipped, texts, yaml};
use crate::packaging::helm;
use crate::packaging::node::{Node, SECRETS};
use crate::support::world::tollgate;

/// The smallest set of values of a release.
fn least() -> Value {
    json!({ "existingSecret": "limits" })
}

/// Values for two nodes with a shard and every listener.
fn whole() -> Value {
    json!({
        "existingSecret": "limits",
        "replicas": 2,
        "listeners": { "grpc": { "enabled": true }, "resp": { "enabled": true } },
        "policy": { "store": { "redis": { "shards": { "a": { "primary": "redis://127.0.0.1:1" } } } } },
        "env": [{ "name": "EXTRA", "value": "1" }],
        "podAnnotations": { "team": "edge" },
        "drainTimeout": 20,
    })
}

/// Values for two nodes with `store`.
fn two_over(store: &Value) -> Value {
    let mut values = least();
    values["replicas"] = json!(2);
    values["policy"] = json!({ "store": store });
    values
}

/// Returns the settings of a Redis server at an address where nothing listens.
fn redis() -> Value {
    json!({ "redis": { "shards": { "a": { "primary": "redis://127.0.0.1:1" } } } })
}

fn memcached() -> Value {
    json!({ "memcached": { "servers": ["127.0.0.1:1"] } })
}

/// Returns all manifests.
fn manifests(values: &Value) -> Vec<Value> {
    let manifests = helm::template(values).unwrap_or_else(|error| panic!("{error}"));
    manifests.split("---\n").filter(|text| !text.trim().is_empty()).map(yaml).collect()
}

/// Returns the manifest of a kind.
fn manifest(values: &Value, kind: &str) -> Option<Value> {
    let mut of_kind = manifests(values).into_iter().filter(|document| document["kind"] == kind);
    let manifest = of_kind.next();
    assert!(of_kind.next().is_none(), "two of {kind}");
    manifest
}

fn container(values: &Value) -> Value {
    manifest(values, "Deployment").unwrap()["spec"]["template"]["spec"]["containers"][0].clone()
}

fn policy(values: &Value) -> String {
    let map = manifest(values, "ConfigMap").unwrap();
    map["data"]["policy.yaml"].as_str().unwrap().to_owned()
}

#[test]
fn helm_finds_no_fault() {
    let moving = json!({ "rollout": { "percent": "0%", "from": memcached(), "to": redis() } });
    for values in [least(), whole(), two_over(&moving)] {
        let described = helm::lint(&values).unwrap_or_else(|error| panic!("{error}"));
        let faults = described["messages"].as_array().unwrap().iter();
        let faults: Vec<_> = faults.filter(|fault| fault["severity"] != "INFO").collect();
        assert!(described["passed"] == true && faults.is_empty(), "{described}");
    }
}

#[test]
fn what_it_renders_starts_and_is_what_kubernetes_looks_for() {
    for (values, listeners) in
        [(least(), vec!["http", "admin"]), (whole(), vec!["http", "grpc", "resp", "admin"])]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.yaml");
        std::fs::write(&path, policy(&values)).unwrap();
        let checked = tollgate(&["check", "--policy", path.to_str().unwrap()]);
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));

        let container = container(&values);
        let names = |list: &Value| -> BTreeSet<String> {
            list.as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(
            names(&container["ports"]),
            listeners.iter().map(|listener| (*listener).to_owned()).collect()
        );
        for (variable, _) in SECRETS
            .iter()
            .filter(|(variable, _)| policy(&values).contains(&format!("env: {variable}\n")))
        {
            assert!(names(&container["env"]).contains(*variable), "{variable}");
        }
        let node = Node::start(&texts(&container["args"]), &path, &listeners);
        assert_eq!(
            node.listeners().into_iter().collect::<BTreeSet<_>>(),
            listeners.iter().copied().collect()
        );
        for probe in ["readinessProbe", "livenessProbe"] {
            let probe = &container[probe]["httpGet"];
            assert_eq!(probe["port"], "admin");
            let url =
                format!("http://{}{}", node.listener("admin"), probe["path"].as_str().unwrap());
            let fetched = crate::packaging::files::run(
                std::process::Command::new("curl").args(["-sf", &url]),
            );
            assert_eq!(fetched.stdout, b"ok\n", "{url}");
        }
        let service = manifest(&values, "Service").unwrap();
        let mut reached = names(&service["spec"]["ports"]);
        reached.insert("admin".to_owned());
        assert_eq!(reached, names(&container["ports"]), "administration stays in the pod");
    }
}

#[test]
fn nodes_that_would_count_apart_are_refused() {
    let memory = || json!({ "memory": {} });
    let rollout = |from, to| json!({ "rollout": { "percent": "0%", "from": from, "to": to } });
    let shadow = |store, with| json!({ "shadow": { "store": store, "shadow_store": with } });
    for (store, sides) in [
        (json!({}), "policy.store"),
        (memory(), "policy.store"),
        (rollout(memory(), redis()), "policy.store.rollout.from"),
        (rollout(memcached(), memory()), "policy.store.rollout.to"),
        (rollout(memory(), memory()), "policy.store.rollout.from and policy.store.rollout.to"),
        (shadow(memory(), redis()), "policy.store.shadow.store"),
        (shadow(redis(), memory()), "policy.store.shadow.shadow_store"),
    ] {
        let mut values = two_over(&store);
        let error = helm::template(&values).unwrap_err();
        let described =
            format!("2 replicas would count separately in {sides}: set redis or memcached");
        assert!(error.contains(&described), "{store}: {error}");
        values["replicas"] = json!(1);
        assert!(helm::template(&values).is_ok(), "{store}: one node counts for all");
    }
    let mut values = least();
    values["replicas"] = json!(2);
    let error = helm::template(&values).unwrap_err();
    assert!(error.contains("2 replicas would count separately in policy.store:"), "{error}");
    let error = helm::template(&json!({})).unwrap_err();
    assert!(error.contains("existingSecret: name a Secret with the keys"), "{error}");
    values["replicas"] = json!(0);
    assert!(helm::template(&values).is_err(), "the schema knows no fleet of none");
}

#[test]
fn every_node_knows_how_many_there_are() {
    let mut counted = redis();
    counted["redis"]["nodes"] = json!(5);
    for (store, nodes) in [
        (redis(), vec![("/redis", 2)]),
        (memcached(), vec![("/memcached", 2)]),
        (counted.clone(), vec![("/redis", 5)]),
        (
            json!({ "rollout": { "percent": "0%", "from": memcached(), "to": redis() } }),
            vec![("/rollout/from/memcached", 2), ("/rollout/to/redis", 2)],
        ),
        (
            json!({ "shadow": { "store": counted, "shadow_store": memcached() } }),
            vec![("/shadow/store/redis", 5), ("/shadow/shadow_store/memcached", 2)],
        ),
    ] {
        let text = policy(&two_over(&store));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.yaml");
        std::fs::write(&path, &text).unwrap();
        let checked = tollgate(&["check", "--policy", path.to_str().unwrap()]);
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        for (at, nodes) in nodes {
            let described = yaml(&text)["store"].pointer(at).map(|store| store["nodes"].clone());
            assert_eq!(described, Some(json!(nodes)), "{at} in\n{text}");
        }
    }
    assert!(manifest(&whole(), "PodDisruptionBudget").is_some());
    assert!(manifest(&least(), "PodDisruptionBudget").is_none());
}

/// A change of one of the values: a JSON pointer, the new value, and the keys that a running node
/// reports as requiring a restart.
type Change = (&'static str, Value, &'static [&'static str]);

/// Applies each of the `changes` to `values` separately: pods must restart exactly for those that a
/// running node cannot apply.
fn restarts_as_a_running_node_asks(values: &Value, changes: Vec<Change>) {
    let restarts_with = |values: &Value| {
        let deployment = manifest(values, "Deployment").unwrap();
        deployment["spec"]["template"]["metadata"]["annotations"]["tollgate/restarts-with"].clone()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    std::fs::write(&path, policy(values)).unwrap();
    let node = Node::start(&texts(&container(values)["args"]), &path, &["http", "admin"]);
    let before = restarts_with(values);
    for (at, to, keys) in changes {
        let mut values = values.clone();
        put(&mut values, at, to);
        std::fs::write(&path, policy(&values)).unwrap();
        let response = node.reload();
        match keys {
            [] => assert!(response.ends_with(" 200"), "{at}: {response}"),
            keys => {
                let keys: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
                let refusal = format!("{} cannot change while this process runs", keys.join(", "));
                assert!(
                    response.ends_with(" 409") && response.contains(&refusal),
                    "{at}: {response}"
                );
            }
        }
        assert_eq!(restarts_with(&values) != before, !keys.is_empty(), "{at}: {response}");
    }
}

/// Sets the value at a JSON pointer, and creates missing objects.
fn put(values: &mut Value, at: &str, to: Value) {
    let place = at.split('/').skip(1).fold(values, |value, key| &mut value[key]);
    *place = to;
}

#[test]
fn pods_restart_for_what_a_running_node_does_not_take() {
    let rollout = json!({ "rollout": { "percent": "0%", "from": redis(), "to": memcached() } });
    let hidden = json!({ "quota": 5, "window": "1m", "per": "address" });
    let mut observed = hidden.clone();
    observed["reveal"] = json!(true);
    restarts_as_a_running_node_asks(
        &two_over(&rollout),
        vec![
            ("/policy/store/rollout/percent", json!("30%"), &[]),
            ("/policy/limits/per-address/quota", json!(5), &[]),
            ("/policy/limits/per-address/reveal", json!(false), &[]),
            ("/policy/limits/another", hidden, &[]),
            ("/policy/answers/headers", json!("github"), &[]),
            ("/policy/limits/another", observed, &["limits.another.reveal"]),
            ("/policy/limits/per-address/reveal", json!(true), &["limits.per-address.reveal"]),
            ("/policy/store/rollout/on_move", json!("reset"), &["store.rollout.on_move"]),
            (
                "/policy/store/rollout/from/redis/deadline",
                json!("20ms"),
                &["store.rollout.from.redis.deadline"],
            ),
            ("/policy/store/rollout/to/memcached/deadline", json!("20ms"), &["store.rollout.to"]),
            ("/policy/store", redis(), &["store"]),
            ("/replicas", json!(3), &["store.rollout.from.redis.nodes", "store.rollout.to"]),
            ("/policy/traces/endpoint", json!("http://127.0.0.1:4318"), &["traces"]),
            ("/policy/serve/dashboard/enabled", json!(false), &["serve.dashboard"]),
            ("/listeners/grpc", json!({ "enabled": true, "port": 8081 }), &["serve.grpc"]),
            ("/admin/port", json!(8183), &["serve.admin"]),
        ],
    );
}

#[test]
fn pods_that_compare_two_stores_do_not_restart_to_compare_more() {
    let shadow = json!({ "shadow": { "store": memcached(), "shadow_store": redis() } });
    let mut values = two_over(&shadow);
    put(&mut values, "/policy/limits/per-address/reveal", json!(true));
    restarts_as_a_running_node_asks(
        &values,
        vec![
            ("/policy/store/shadow/percent", json!("5%"), &[]),
            ("/policy/limits/per-address/quota", json!(5), &[]),
            ("/policy/limits/per-address/reveal", json!(false), &["limits.per-address.reveal"]),
            (
                "/policy/store/shadow/shadow_store/redis/deadline",
                json!("20ms"),
                &["store.shadow.shadow_store.redis.deadline"],
            ),
        ],
    );
}

#[test]
fn one_pod_that_counts_in_memory_restarts_for_the_same() {
    restarts_as_a_running_node_asks(
        &least(),
        vec![
            ("/policy/limits/per-address/quota", json!(5), &[]),
            ("/policy/limits/per-address/reveal", json!(true), &["limits.per-address.reveal"]),
            ("/policy/store/memory/max_entries", json!(5_000_000), &["store.memory"]),
            ("/policy/traces/sample", json!("5%"), &["traces"]),
        ],
    );
}

#[test]
fn pods_may_do_nothing_that_they_need_not() {
    let deployment = manifest(&whole(), "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let context = &pod["containers"][0]["securityContext"];
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["capabilities"]["drop"][0], "ALL");
}

#[test]
fn a_default_limit_is_removed_as_the_values_explain() {
    let mut values = least();
    values["policy"] = json!({
        "subjects": { "key": { "header": "x-api-key" } },
        "limits": { "mine": { "quota": 5, "window": "1m", "per": "key" } },
        "rules": [{ "limits": "mine" }],
    });
    let names = |values: &Value, part: &str| -> Vec<String> {
        yaml(&policy(values))[part].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(names(&values, "limits"), ["mine", "per-address"], "Helm merges maps");
    let explained = shipped("deploy/helm/tollgate/values.yaml");
    for line in ["#   subjects: { address: null }\n", "#   limits: { per-address: null }\n"] {
        assert!(explained.contains(line), "{line}");
    }
    values["policy"]["subjects"]["address"] = Value::Null;
    values["policy"]["limits"]["per-address"] = Value::Null;
    assert_eq!(names(&values, "limits"), ["mine"]);
    assert_eq!(names(&values, "subjects"), ["key"]);
}

/// Helm reads YAML 1.1, in which `off` is `false`.
#[test]
fn a_mode_that_helm_reads_as_false_is_refused_with_a_remedy() {
    for at in ["policy.shed", "policy.shed.fleet", "policy.shed.worker"] {
        let pointer = format!("/{}/mode", at.replace('.', "/"));
        let mut values = least();
        put(&mut values, &pointer, json!(false));
        let error = helm::template(&values).unwrap_err();
        let described = format!("{at}.mode is false: write \"off\"");
        assert!(error.contains(&described), "{error}");
        put(&mut values, &pointer, json!("off"));
        assert_eq!(
            yaml(&policy(&values)).pointer(&pointer["/policy".len()..]),
            Some(&json!("off"))
        );
    }
}
