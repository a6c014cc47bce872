//! `deploy/docker/Dockerfile`: runs the commands of its image here.

use std::fs;

use serde_json::Value;

use crate::packaging::files::{run, shipped, texts};
use crate::packaging::node::{Node, SECRETS};

/// Returns the instructions of the Dockerfile, each on one line, without comments.
fn instructions() -> Vec<(String, String)> {
    let text = shipped("deploy/docker/Dockerfile");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| line.trim().split_once(' '));
    lines.map(|(name, rest)| (name.to_owned(), rest.trim().to_owned())).collect()
}

/// Returns the arguments of the last instruction with this name.
fn last(name: &str) -> String {
    let instructions = instructions();
    let last = instructions.iter().rev().find(|(instruction, _)| instruction == name);
    last.unwrap_or_else(|| panic!("no {name}")).1.clone()
}

/// Returns the words of a command in exec form.
fn words(list: &str) -> Vec<String> {
    texts(&serde_json::from_str::<Value>(list).unwrap())
}

const POLICY: &str = "
subjects: { address: { client_address: {} } }
limits: { all: { quota: 3, window: 1h, per: address } }
rules: [ { limits: all } ]
";

/// Returns the policy with the listener that the image exposes.
fn served(access: &str) -> String {
    let port = last("EXPOSE");
    format!("{POLICY}serve: {{ http: {{ listen: \"0.0.0.0:{port}\"{access} }} }}\n")
}

#[test]
fn the_image_runs_as_nobody_and_starts_from_images_of_a_version() {
    let user = last("USER");
    let (user, group) = user.split_once(':').unwrap();
    assert!(user.parse::<u32>().unwrap() > 0 && group.parse::<u32>().unwrap() > 0);
    let bases: Vec<String> = instructions()
        .into_iter()
        .filter(|(name, _)| name == "FROM")
        .map(|(_, base)| base)
        .collect();
    assert_eq!(bases.len(), 2, "a build and what stays of it");
    assert!(bases.iter().all(|base| base.contains(':') && !base.contains(":latest")), "{bases:?}");
    let rust = shipped("Cargo.toml").lines().find_map(|line| {
        Some(line.strip_prefix("rust-version = \"")?.trim_end_matches('"').to_owned())
    });
    assert!(bases[0].starts_with(&format!("rust:{}-", rust.unwrap())), "{bases:?}");
}

#[test]
fn the_image_is_healthy_as_soon_as_it_serves() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    fs::write(&policy, served(", tokens: { env: TOLLGATE_TOKENS }")).unwrap();
    assert_eq!(words(&last("ENTRYPOINT")), ["/usr/local/bin/tollgate"]);
    let node = Node::start(&words(&last("CMD")), &policy, &["http"]);
    assert_eq!(node.listeners(), ["http", "admin"]);

    let check = last("HEALTHCHECK");
    let (_, command) = check.split_once("CMD ").unwrap();
    let [program, health, address] = &words(command)[..] else { panic!("{command}") };
    assert_eq!((program.as_str(), health.as_str()), ("/usr/local/bin/tollgate", "health"));
    assert!(words(&last("CMD")).windows(2).any(|pair| pair == ["--admin", address]));
    let healthy =
        || crate::support::world::tollgate(&["health", node.listener("admin")]).status.success();
    assert!(healthy());
}

#[test]
fn the_command_that_runs_the_image_passes_what_its_policy_needs() {
    let text = shipped("deploy/docker/Dockerfile");
    let comments: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    let run = comments.iter().find(|line| line.trim().starts_with("docker run ")).unwrap();
    let variables = comments.iter().flat_map(|line| line.split("env: ").skip(1));
    let variables: Vec<_> = variables.map(|rest| rest.split(' ').next().unwrap()).collect();
    assert_eq!(variables, ["TOLLGATE_TOKENS"]);
    for variable in variables {
        assert!(run.contains(&format!(" --env {variable} ")), "{run}");
    }
    assert!(run.contains(":/etc/tollgate:ro "), "a file mounted alone stays the old one: {run}");
}

#[test]
fn the_image_lets_nobody_in_without_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    fs::write(&policy, served("")).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let policy = policy.display().to_string();
    command.args(
        words(&last("CMD")).iter().map(|word| word.replace("/etc/tollgate/policy.yaml", &policy)),
    );
    let output = run(command.envs(SECRETS));
    assert!(!output.status.success());
    let response = String::from_utf8(output.stderr).unwrap();
    assert!(response.contains("requires no token"), "{response}");
}

#[test]
fn all_that_the_binary_holds_is_in_the_context() {
    let ignored = shipped("deploy/docker/Dockerfile.dockerignore");
    let kept: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    for needed in ["Cargo.toml", "Cargo.lock", "crates", "policies", "examples"] {
        assert!(kept.contains(&needed), "{needed}");
    }
    for kept in kept {
        assert!(crate::packaging::files::root().join(kept).exists(), "{kept}");
    }
}
