//! `deploy/helm/tollgate`: linted and rendered by Helm, and what it renders, run.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::files::{texts, yaml};
use crate::helm;
use crate::node::{Node, SECRETS};
use crate::world::tollgate;

/// The least that a release says.
fn least() -> Value {
    json!({ "existingSecret": "limits" })
}

/// Two nodes over a shard, with every door.
fn whole() -> Value {
    json!({
        "existingSecret": "limits",
        "replicas": 2,
        "doors": { "grpc": { "enabled": true }, "resp": { "enabled": true } },
        "policy": { "store": { "redis": { "shards": { "a": { "primary": "redis://127.0.0.1:1" } } } } },
        "env": [{ "name": "EXTRA", "value": "1" }],
        "podAnnotations": { "team": "edge" },
        "drainTimeout": 20,
    })
}

/// The manifest of a kind.
fn manifest(values: &Value, kind: &str) -> Option<Value> {
    let manifests = helm::template(values).unwrap_or_else(|error| panic!("{error}"));
    let documents = manifests.split("---\n").filter(|text| !text.trim().is_empty()).map(yaml);
    let mut of_kind = documents.filter(|document| document["kind"] == kind);
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
    for values in [least(), whole()] {
        let said = helm::lint(&values).unwrap_or_else(|error| panic!("{error}"));
        let faults = said["messages"].as_array().unwrap().iter();
        let faults: Vec<_> = faults.filter(|fault| fault["severity"] != "INFO").collect();
        assert!(said["passed"] == true && faults.is_empty(), "{said}");
    }
}

#[test]
fn what_it_renders_starts_and_is_what_kubernetes_looks_for() {
    for (values, doors) in
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
            doors.iter().map(|door| (*door).to_owned()).collect()
        );
        for (variable, _) in SECRETS
            .iter()
            .filter(|(variable, _)| policy(&values).contains(&format!("env: {variable}\n")))
        {
            assert!(names(&container["env"]).contains(*variable), "{variable}");
        }
        let node = Node::start(&texts(&container["args"]), &path, &doors);
        assert_eq!(
            node.doors().into_iter().collect::<BTreeSet<_>>(),
            doors.iter().copied().collect()
        );
        for probe in ["readinessProbe", "livenessProbe"] {
            let probe = &container[probe]["httpGet"];
            assert_eq!(probe["port"], "admin");
            let url = format!("http://{}{}", node.door("admin"), probe["path"].as_str().unwrap());
            let fetched = crate::files::run(std::process::Command::new("curl").args(["-sf", &url]));
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
    let mut values = least();
    values["replicas"] = json!(2);
    let error = helm::template(&values).unwrap_err();
    assert!(error.contains("2 replicas without a shared store would each count alone"), "{error}");
    let error = helm::template(&json!({})).unwrap_err();
    assert!(error.contains("existingSecret: name a Secret with the keys"), "{error}");
    values["replicas"] = json!(0);
    assert!(helm::template(&values).is_err(), "the schema knows no fleet of none");
}

#[test]
fn every_node_knows_how_many_there_are() {
    let policy = yaml(&policy(&whole()));
    assert_eq!(policy["store"]["redis"]["nodes"], 2);
    assert!(manifest(&whole(), "PodDisruptionBudget").is_some());
    assert!(manifest(&least(), "PodDisruptionBudget").is_none());
}

#[test]
fn pods_restart_for_what_a_running_node_does_not_take() {
    let restarts_with = |values: &Value| {
        let deployment = manifest(values, "Deployment").unwrap();
        deployment["spec"]["template"]["metadata"]["annotations"]["tollgate/restarts-with"].clone()
    };
    let before = restarts_with(&whole());
    let mut values = whole();
    values["policy"]["limits"] = json!({ "per-address": { "quota": 5 } });
    assert_eq!(restarts_with(&values), before, "a limit is taken as it runs");
    values["policy"]["store"]["redis"]["deadline"] = json!("20ms");
    assert_ne!(restarts_with(&values), before, "a store is not");
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
    let drain: u64 = 20;
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > drain + 5, "{pod}");
}
