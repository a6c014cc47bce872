//! The audit of changes whose administrator disconnects before the change is made.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::timeout;
use tollgate::model::{Charge, Readings, Store, StoreError, Timestamp};
use tollgate::overrides::{
    ChangeResult, OverrideChange, OverrideStorage, OverrideStore, OverrideStoreError,
    OverrideTable, Overrides,
};
use tollgate::store::Memory;
use tollgate::tenants::{
    TenantBatch, TenantStorage, TenantStore, TenantStoreError, Tenants, TenantsChanged,
};
use tollgate::{Limiter, ManualClock};
use tollgate_server::Access;
use tollgate_server::http::{HttpOptions, Reload};

use crate::http::world::{START, World};

const POLICY: &str = "
subjects: { org: { header: x-org, trusted: true } }
tenants: { by: org }
limits: { calls: { quota: 5, window: 60s, per: org } }
rules: [{ match: { has: org }, limits: calls }]
";

/// A gate in front of every change.
#[derive(Debug)]
struct Gate {
    /// Has a permit for each change that arrived.
    arrived: Semaphore,
    /// Each permit lets one change pass.
    open: Semaphore,
}

impl Gate {
    async fn pass(&self) {
        self.arrived.add_permits(1);
        self.open.acquire().await.unwrap().forget();
    }
}

struct GatedStore(Arc<Gate>, Memory);

impl Store for GatedStore {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        self.0.pass().await;
        self.1.apply(now, charges).await
    }
}

#[derive(Debug)]
struct GatedOverrides(Arc<Gate>, Arc<Overrides>);

impl OverrideStore for GatedOverrides {
    fn change(
        &self,
        now: Timestamp,
        change: OverrideChange,
    ) -> Pin<Box<dyn Future<Output = Result<ChangeResult, OverrideStoreError>> + Send + '_>> {
        Box::pin(async move {
            self.0.pass().await;
            self.1.change(now, change).await
        })
    }

    fn table(&self) -> Arc<OverrideTable> {
        self.1.table()
    }

    fn storage(&self) -> OverrideStorage {
        OverrideStorage::InProcess
    }
}

#[derive(Debug)]
struct GatedTenants(Arc<Gate>, Arc<Tenants>);

impl TenantStore for GatedTenants {
    fn apply(
        &self,
        now: Timestamp,
        batch: TenantBatch,
    ) -> Pin<Box<dyn Future<Output = Result<TenantsChanged, TenantStoreError>> + Send + '_>> {
        Box::pin(async move {
            self.0.pass().await;
            TenantStore::apply(&self.1, now, batch).await
        })
    }

    fn storage(&self) -> TenantStorage {
        TenantStorage::InProcess
    }
}

/// Returns a listener for administrators, its limiter, and the gate in front of its changes.
fn gated() -> (World, Arc<Limiter<GatedStore>>, Arc<Gate>) {
    let gate = Arc::new(Gate { arrived: Semaphore::new(0), open: Semaphore::new(0) });
    let policy = tollgate_policy::parse("test.yaml", POLICY).unwrap().policy;
    let clock = Arc::new(ManualClock::new(START));
    let store = GatedStore(Arc::clone(&gate), Memory::default());
    let limiter = Arc::new(Limiter::new(policy, store).with_clock(Arc::clone(&clock)));
    let overrides = GatedOverrides(Arc::clone(&gate), Arc::clone(limiter.overrides()));
    let tenants = GatedTenants(Arc::clone(&gate), Arc::clone(limiter.tenants()));
    let reload = Arc::clone(&gate);
    let reload = Reload::new(move || {
        Handle::current().block_on(reload.pass());
        Ok(json!({ "changed": false }))
    });
    let options = HttpOptions {
        admin: Some(Access::Open),
        overrides: Some(Arc::new(overrides)),
        tenants: Some(Arc::new(tenants)),
        reload: Some(reload),
        ..HttpOptions::default()
    };
    (World::around(Arc::clone(&limiter), clock, options), limiter, gate)
}

/// Returns the actions of the audit, latest first.
async fn actions(world: &World) -> Vec<String> {
    let audit = world.get("/v1/audit").await.ok();
    let entries = audit["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["action"].as_str().unwrap().to_owned()).collect()
}

/// Sends a change, and disconnects while the change is being made. Then the change is made.
async fn change_and_disconnect(world: &World, gate: &Gate, change: Request<Body>) {
    {
        let mut answered = pin!(world.call(change));
        tokio::select! {
            biased;
            answered = &mut answered => panic!("the change is not made yet: {answered:?}"),
            arrived = gate.arrived.acquire() => arrived.unwrap().forget(),
        }
    }
    gate.open.add_permits(1);
}

fn request(method: &str, path: &str, media_type: &str, body: String) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    request.body(body.into()).unwrap()
}

#[tokio::test]
async fn a_change_has_an_entry_although_its_administrator_disconnects() {
    let (world, _, gate) = gated();
    let over = json!({ "group": { "org": "a" }, "blocked": true, "expires_in": "1h",
        "reason": "a test" });
    let row = json!({ "quotas": { "calls": { "quota": 9 } } });
    let mut expected = Vec::new();
    for (method, path, media_type, body, action) in [
        ("DELETE", "/v1/standing?limit=calls&subject[org]=a", "", Value::Null, "subject reset"),
        ("PUT", "/v1/overrides", "application/json", over, "override set"),
        ("DELETE", "/v1/overrides?group[org]=a", "", Value::Null, "override removed"),
        ("PUT", "/v1/tenants/a", "application/json", row, "tenant set"),
        ("DELETE", "/v1/tenants/a", "", Value::Null, "tenant removed"),
        ("POST", "/v1/policy/reload", "", Value::Null, "policy reloaded"),
    ] {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        change_and_disconnect(&world, &gate, request(method, path, media_type, body)).await;
        expected.insert(0, action);
        let noted = async {
            while actions(&world).await.len() < expected.len() {
                yield_now().await;
            }
        };
        timeout(Duration::from_secs(10), noted).await.expect(action);
        assert_eq!(actions(&world).await, expected);
    }
}

/// The bug: a process that stops waited only for its connections, and not for a change whose
/// administrator had disconnected. The entry of this change was lost.
#[tokio::test]
async fn a_process_that_stopped_lost_the_entry_of_a_change() {
    let (world, limiter, gate) = gated();
    let reset = "/v1/standing?limit=calls&subject[org]=a";
    change_and_disconnect(&world, &gate, request("DELETE", reset, "", String::new())).await;
    limiter.finished().await;
    assert_eq!(actions(&world).await, ["subject reset"]);
}

#[tokio::test]
async fn an_import_has_an_entry_and_blocks_other_imports_although_its_administrator_disconnects() {
    let (world, _, gate) = gated();
    let import = || request("POST", "/v1/tenants", "text/csv", "tenant,plan,quotas\n".to_owned());
    {
        let mut first = pin!(world.call(import()));
        tokio::select! {
            biased;
            answered = &mut first => panic!("the rows are not stored yet: {answered:?}"),
            arrived = gate.arrived.acquire() => arrived.unwrap().forget(),
        }
    }
    assert_eq!(world.call(import()).await.problem(503), "busy");
    gate.open.add_permits(1);
    let noted = async {
        while actions(&world).await.is_empty() {
            yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), noted).await.expect("an entry");
    assert_eq!(actions(&world).await, ["tenants imported"]);
}
