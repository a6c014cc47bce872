//! Tests that are generated from the OpenAPI document only.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use serde_json::json;
use tollgate::model::Percent;
use tollgate::observe::{Observed, Top};
use tollgate::overrides::Overrides;
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::tenants::Tenants;
use tollgate_server::http::{
    History, HistoryCounts, HistoryReading, Metrics, Reload, Simulate, Status,
};
use tollgate_server::{Access, ConnectionLimits, HttpOptions, Tokens};

use crate::http::server::Server;
use crate::http::world::{START, policy};

const TOKEN: &str = "0123456789abcdef";

/// Every response is described, every response matches its description, no request is answered with
/// 5xx, and no input that the document forbids is accepted.
#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_no_contradiction() {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/schemathesis");
    assert!(packages.join("schemathesis").is_dir(), "missing program: schemathesis; run ./test");
    let access = Access::Tokens(Tokens::parse(TOKEN).unwrap());
    let options = HttpOptions {
        admin: Some(access.clone()),
        status: Some(Status::new(|| json!({ "store": "memory" }))),
        metrics: Some(Metrics::new(|_| {})),
        reload: Some(Reload::new(|| Ok(json!({ "replaced": false, "policy": "0123abcd" })))),
        simulate: Some(Simulate::new(|_, _| Ok(json!({ "requests": 0 })))),
        rollout: Some(RolloutPercentage::new(Percent::NONE)),
        overrides: Some(Arc::new(Arc::<Overrides>::default())),
        tenants: Some(Arc::new(Arc::<Tenants>::default())),
        top: Some(Arc::new(Top::new(&policy(), START))),
        history: Some(History::new(0, || HistoryReading {
            at_ms: 1_000,
            requests: HistoryCounts { admitted: 1, ..HistoryCounts::default() },
            latency: Observed::NOTHING,
            limits: Vec::new(),
        })),
        access,
        ..HttpOptions::default()
    };
    let policy = policy().with_tenants(0).unwrap();
    let server = Server::of(policy, options, ConnectionLimits::default());
    let url = format!("http://{}/openapi.json", server.address);
    let output = tokio::task::spawn_blocking(move || {
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("schemathesis.toml");
        std::fs::write(&settings, include_str!("schemathesis.toml")).unwrap();
        let hooks = folder.path().join("schemathesis_hooks.py");
        std::fs::write(&hooks, include_str!("schemathesis_hooks.py")).unwrap();
        let found_in = std::env::join_paths([folder.path(), &packages]).unwrap();
        Command::new("python3")
            .args(["-m", "schemathesis.cli", "--config-file"])
            .arg(&settings)
            .args(["run", &url, "--header", &format!("Authorization: Bearer {TOKEN}")])
            .args(["--header", &format!("x-tollgate-token: {TOKEN}")])
            .current_dir(folder.path())
            .env("PYTHONPATH", found_in)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .expect("python3 runs")
    });
    let output = output.await.unwrap();
    server.end().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    println!("{printed}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
