//! `tollgate doctor` on servers that are well, badly set up, or gone.

use std::process::{Command, Output};

use serde_json::Value;

use crate::fleet::Fleet;

#[tokio::test]
async fn a_deployment_is_examined() {
    let mut fleet = Fleet::start(2).await;
    let policy = fleet.policy("policy.yaml", &[0, 1], None);
    let policy = policy.to_str().unwrap();

    let well = doctor(&[policy, "--json"]);
    assert!(well.status.success(), "{}", text(&well.stderr));
    let told: Value = serde_json::from_slice(&well.stdout).unwrap();
    assert_ne!(told["worst"], "problem", "{told:#}");
    let served = |finding: &&Value| finding["check"] == "serves" && finding["level"] == "ok";
    assert_eq!(told["findings"].as_array().unwrap().iter().filter(served).count(), 2);

    fleet.servers[0].tell(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).await;
    let bad = doctor(&[policy]);
    assert_eq!(bad.status.code(), Some(1));
    let told = text(&bad.stdout);
    assert!(told.contains("PROBLEM  eviction"), "{told}");
    assert!(told.contains("CONFIG SET maxmemory-policy noeviction"), "{told}");
    assert_eq!(told.matches("PROBLEM").count(), 1, "{told}");

    fleet.servers[0].tell(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    let strict = doctor(&[policy, "--strict"]);
    let warns = text(&strict.stdout).contains("  warning  ");
    assert_eq!(strict.status.success(), !warns, "{}", text(&strict.stdout));

    fleet.servers[1].kill();
    let gone = doctor(&[policy]);
    assert_eq!(gone.status.code(), Some(1));
    let told = text(&gone.stdout);
    assert!(told.contains("PROBLEM  serves") && told.contains("PROBLEM  reach"), "{told}");
    assert!(!told.contains("the same on every node"), "no secret is shown: {told}");
}

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.arg("doctor").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
