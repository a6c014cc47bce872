//! Clients of other projects, without Envoy.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::envoy::site::{LONG_WINDOW, changed, shipped};
use crate::envoy::tollgate::Tollgate;

fn tollgate(folder: &TempDir) -> Tollgate {
    let path = folder.path().join("policy.yaml");
    std::fs::write(&path, changed(&shipped("policies/envoy.yaml"), &[LONG_WINDOW])).unwrap();
    Tollgate::start(&path)
}

/// Returns the output of the program in the same directory.
fn python(program: &str, tollgate: &Tollgate) -> Value {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packages = here.join("../../target/envoy/python");
    assert!(
        packages.join("grpc").exists(),
        "missing packages: {} has no grpc; crates/tollgate-cli/tests/slow/envoy/install.sh installs \
         them, and so does ./test",
        packages.display()
    );
    let output = Command::new("python3")
        .arg("-B")
        .arg(here.join("tests/slow/envoy/python").join(program))
        .arg(tollgate.address.to_string())
        .env("PYTHONPATH", packages)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("missing program: python3 ({error}); ./test installs it"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

#[test]
fn the_messages_of_another_project_are_understood() {
    let folder = TempDir::new().unwrap();
    let answers = python("ask.py", &tollgate(&folder));
    let left = |index: usize, status: usize| {
        let status = &answers[index]["statuses"][status];
        (status["code"].clone(), status["limitRemaining"].clone())
    };
    let limit = json!({ "name": "per-address", "requestsPerUnit": 600, "unit": "DAY" });
    assert_eq!(answers[0]["overallCode"], json!("OK"));
    assert_eq!(answers[0]["statuses"][0]["currentLimit"], limit);
    for (index, remaining) in [599, 596, 596, 598].into_iter().enumerate() {
        assert_eq!(left(index, 0), (json!("OK"), json!(remaining)), "{index}");
    }
    let field = |answer: &Value| answer["responseHeadersToAdd"][0]["key"].clone();
    assert_eq!(field(&answers[0]), json!("ratelimit-policy"));
    // A limit in the request, exceeded by the second request, which is then counted on neither.
    assert_eq!(left(4, 1), (json!("OK"), json!(597)));
    assert_eq!(answers[5]["overallCode"], json!("OVER_LIMIT"));
    assert_eq!(left(5, 1), (json!("OK"), json!(597)));
    let refusal = json!({
        "status": "INVALID_ARGUMENT",
        "details": "the domain is empty: send a domain of the policy",
    });
    assert_eq!(answers[6], refusal);
}

#[test]
fn a_client_that_knows_nothing_can_ask_what_there_is() {
    let folder = TempDir::new().unwrap();
    let response = python("reflect.py", &tollgate(&folder));
    let services = json!([
        "envoy.service.ratelimit.v3.RateLimitService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    ]);
    assert_eq!(response["services"], services);
    assert_eq!(response["health"], json!({ "status": "SERVING" }));
    assert_eq!(response["answer"]["overallCode"], json!("OK"));
    assert_eq!(response["answer"]["statuses"][0]["limitRemaining"], json!(598));
}
