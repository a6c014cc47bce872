//! `GET /v1/history`: the decisions of the last hour.

use serde_json::json;
use tollgate::observe::Observed;
use tollgate::store::Memory;
use tollgate_server::Access;
use tollgate_server::http::{History, HistoryCounts, HistoryReading, HttpOptions};

use crate::http::world::World;

#[tokio::test]
async fn administrators_read_the_samples() {
    let counts = HistoryCounts { admitted: 3, refused: 2, degraded: 1, would_refuse: 4 };
    let history = History::new(1_000, move || HistoryReading {
        at_ms: 3_000,
        requests: counts,
        latency: Observed::NOTHING,
        limits: vec![("core".into(), counts), ("idle".into(), HistoryCounts::default())],
    });
    let (admin, history) = (Some(Access::Open), Some(history));
    let world =
        World::over(Memory::default(), HttpOptions { admin, history, ..HttpOptions::default() });
    let counts = json!({ "admitted": [3], "refused": [2], "degraded": [1], "would_refuse": [4] });
    assert_eq!(
        world.get("/v1/history").await.ok(),
        json!({
            "period_ms": 10_000, "at_ms": [3_000], "elapsed_ms": [2_000], "requests": counts,
            "latency": { "p50_us": [null], "p99_us": [null] }, "limits": { "core": counts },
        })
    );
    assert_eq!(World::new().get("/v1/history").await.problem(403), "forbidden");
    let elsewhere = World::over(
        Memory::default(),
        HttpOptions { admin: Some(Access::Open), ..HttpOptions::default() },
    );
    assert_eq!(elsewhere.get("/v1/history").await.problem(404), "not-found");
}
