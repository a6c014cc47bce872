//! `deploy/compose`: its servers, nodes and Envoy, started here with the arguments from the file.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::kit::Server;
use crate::packaging::envoy::{Envoy, get};
use crate::packaging::files::{changed, shipped, texts, yaml};
use crate::packaging::node::{Node, SECRETS};

/// The compose file with its anchors resolved.
fn services() -> serde_json::Map<String, Value> {
    let file = yaml(&shipped("deploy/compose/compose.yaml"));
    let mut services = file["services"].as_object().unwrap().clone();
    for service in services.values_mut() {
        let service = service.as_object_mut().unwrap();
        if let Some(Value::Object(base)) = service.remove("<<") {
            for (key, value) in base {
                service.entry(key).or_insert(value);
            }
        }
    }
    services
}

/// Starts a Redis server like the service `name`, except for the server that it follows.
async fn redis(services: &serde_json::Map<String, Value>, name: &str) -> Server {
    let command = texts(&services[name]["command"]);
    let own = command.iter().position(|word| word == "--replicaof").unwrap_or(command.len());
    let arguments: Vec<&str> = command[..own].iter().map(String::as_str).collect();
    Server::start_with(&arguments).await
}

/// Starts the shards of the policy, each with a replica in sync.
async fn shards(services: &serde_json::Map<String, Value>) -> Vec<(String, Server)> {
    let mut servers = Vec::new();
    for shard in ["a", "b"] {
        let (primary, replica) = (format!("redis-{shard}"), format!("redis-{shard}-replica"));
        let command = texts(&services[&replica]["command"]);
        assert!(command.ends_with(&["--replicaof".to_owned(), primary.clone(), "6379".to_owned()]));
        let (first, second) = (redis(services, &primary).await, redis(services, &replica).await);
        second.follow(&first).await;
        servers.extend([(primary, first), (replica, second)]);
    }
    servers
}

/// Returns the policy for local servers, with windows that do not end during a test.
fn policy(servers: &[(String, Server)], folder: &Path) -> std::path::PathBuf {
    let text = shipped("deploy/compose/tollgate/policy.yaml");
    let text = changed(&text, "window: 1m, anchor: calendar", "window: 1d");
    let text = changed(&text, "window: 1h, anchor: calendar", "window: 1d");
    // On a busy machine a decision may miss the deadline, and would then be made by the node alone.
    let text = changed(&text, "    nodes: 2", "    deadline: 10s\n    nodes: 2");
    let text = servers.iter().fold(text, |text, (name, server)| {
        changed(&text, &format!("redis://{name}:6379"), &server.url())
    });
    let path = folder.join("policy.yaml");
    std::fs::write(&path, text).unwrap();
    path
}

fn envoy(services: &serde_json::Map<String, Value>, nodes: &[Node], folder: &TempDir) -> Envoy {
    let mut text = changed(&shipped("deploy/compose/envoy.yaml"), "timeout: 0.02s", "timeout: 30s");
    text = changed(&text, "0.0.0.0, port_value: 10000", "127.0.0.1, port_value: 0");
    // Two tests at a time would use the same addresses.
    let service = format!("path: \"{}\"", folder.path().join("service").display());
    assert_eq!(text.matches("path: \"@service\"").count(), 2);
    text = text.replace("path: \"@service\"", &service);
    for (number, node) in nodes.iter().enumerate() {
        let (_, port) = node.listener("grpc").rsplit_once(':').unwrap();
        let name = format!("tollgate-{}, port_value: 8081", number + 1);
        text = changed(&text, &name, &format!("127.0.0.1, port_value: {port}"));
    }
    let service = &services["envoy"];
    assert_eq!(texts(&service["ports"]), ["127.0.0.1:10000:10000"]);
    Envoy::start(&texts(&service["command"]), &text, folder.path(), &SECRETS[1..2])
}

#[tokio::test]
async fn two_nodes_behind_envoy_count_together_in_two_shards() {
    let services = services();
    let folder = tempfile::tempdir().unwrap();
    let servers = shards(&services).await;
    let policy = policy(&servers, folder.path());
    let node =
        |name: &str| Node::start(&texts(&services[name]["command"]), &policy, &["grpc", "admin"]);
    let nodes = [node("tollgate-1"), node("tollgate-2")];
    assert!(nodes.iter().all(|node| node.listeners() == ["grpc", "admin"]));
    let envoy = envoy(&services, &nodes, &folder);
    envoy.knows_healthy(2);

    let requested = 30;
    let answers: Vec<_> = (0..requested)
        .map(|_| get(envoy.listener(), "/", "x-api-key: me\r\n").expect("an answer"))
        .collect();
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body == "hello\n"));
    for (number, answer) in (1..).zip(&answers) {
        let left = format!("\"per-key\";r={};", 5_000 - number);
        assert!(answer.field("ratelimit").contains(&left), "{number}: {answer:?}");
    }
    let mut counters = Vec::new();
    for (_, server) in servers.iter().filter(|(name, _)| !name.ends_with("replica")) {
        let keys = server.keys().await;
        let keys = keys.into_iter().map(|key| String::from_utf8_lossy(&key).into_owned());
        counters.extend(keys.filter(|key| key.contains(":per-")));
    }
    assert_eq!(counters.len(), 2, "an address and a key: {counters:?}");
}

#[test]
fn every_service_stands_for_a_version_and_is_reached_from_this_machine_only() {
    let services = services();
    let mut published = Vec::new();
    for (name, service) in &services {
        let image = service["image"].as_str().unwrap();
        assert!(!image.ends_with(":latest"), "{image}");
        assert!(image == "tollgate" || image.contains(':'), "{image}");
        if service.get("ports").is_some() {
            published.push(name.as_str());
        }
        for port in service.get("ports").into_iter().flat_map(texts) {
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port}");
        }
    }
    for node in ["tollgate-1", "tollgate-2"] {
        let volumes = texts(&services[node]["volumes"]);
        assert_eq!(
            volumes,
            ["./tollgate:/etc/tollgate:ro"],
            "a single file would stay the old one"
        );
    }
    published.sort_unstable();
    assert_eq!(published, ["envoy", "prometheus", "tollgate-1", "tollgate-2"]);
    let file = yaml(&shipped("deploy/compose/compose.yaml"));
    assert_eq!(file["networks"]["store"]["internal"], true);
    let context = &services["tollgate-1"]["build"];
    let dockerfile = crate::packaging::files::root()
        .join("deploy/compose")
        .join(context["context"].as_str().unwrap());
    assert!(dockerfile.join(context["dockerfile"].as_str().unwrap()).exists());
}
