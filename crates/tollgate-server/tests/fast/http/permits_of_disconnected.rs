//! The permits of clients that disconnect while the store decides.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use tollgate::model::{Charge, Readings, Store, StoreError, Timestamp};
use tollgate::store::Memory;
use tollgate::{Limiter, ManualClock};
use tollgate_server::http::HttpOptions;

use crate::http::world::{START, World};

/// A request on `calls` makes a second store call, for the candidate.
const POLICY: &str = "
limits:
  flight: { algorithm: concurrency, quota: 3, permit_ttl: 10s }
  calls:  { quota: 9, window: 60s, candidate: { quota: 8 } }
rules: [{ limits: [flight, calls] }]
";

/// A store that never answers a call for the candidate.
struct WithoutCandidate(Memory);

impl Store for WithoutCandidate {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        if charges.iter().any(|charge| charge.limit.capacity() == 8) {
            return pending().await;
        }
        self.0.apply(now, charges).await
    }
}

/// The bug: a decision with shadow rules or candidates makes a second store call. If the client
/// disconnected during this call, its permits were held until they expired.
#[tokio::test]
async fn a_client_that_disconnected_during_the_second_store_call_kept_its_permits() {
    let policy = tollgate_policy::parse("test.yaml", POLICY).unwrap().policy;
    let clock = Arc::new(ManualClock::new(START));
    let limiter = Limiter::new(policy, WithoutCandidate(Memory::default()));
    let limiter = Arc::new(limiter.with_clock(Arc::clone(&clock)));
    let world = World::around(limiter, clock, HttpOptions::default());
    let flight = json!({ "limits": [{ "name": "flight" }] });
    let both = json!({ "limits": [{ "name": "flight" }, { "name": "calls" }] });
    for (path, body) in [
        ("/v1/check", both.clone()),
        ("/v1/reserve", both.clone()),
        // The first check of the batch is decided before the client disconnects.
        ("/v1/check/batch", json!({ "checks": [flight, both] })),
    ] {
        let answered = timeout(Duration::ZERO, world.post(path, body.to_string()));
        answered.await.map(drop).expect_err("the call for the candidate is not answered");
        let peek = world.post("/v1/peek", flight.to_string()).await.ok();
        assert_eq!(peek["statuses"][0]["used"], 0, "{path}");
    }
}
