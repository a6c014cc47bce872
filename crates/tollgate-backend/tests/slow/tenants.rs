//! Tenants that nodes share, on real servers.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tollgate::Limiter;
use tollgate::model::policy::Named;
use tollgate::model::{Cost, StoreError};
use tollgate::tenants::{
    MAX_TENANTS, Tenant, TenantBatch, TenantQuota, TenantStorage, TenantStore, TenantStoreError,
};
use tollgate_backend::{Backend, Refunds, TenantSync};
use tollgate_policy::{KeySource, parse};

use crate::kit::Server;
use crate::memcached_kit::Server as Memcached;
use crate::redis::fleet::{PATIENT, shards};

/// The time limit of each wait of a test. A busy machine does not reach this limit.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const POLICY: &str = "
secret: { file: /run/key }
subjects: { org: { header: x-org, trusted: true } }
tenants: { by: org }
limits: { calls: { quota: { by: plan, values: { pro: 20 }, default: 3 }, window: 1h, per: org } }
rules: [{ limits: calls }]
";

/// Starts a node over `store`, with the secret of all nodes, and waits until the node is connected.
pub(crate) async fn node(store: &str) -> (Arc<Limiter<Backend>>, TenantSync) {
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    secret.write_all(b"the secret of every node of this test").unwrap();
    let mut loaded = parse("test.yaml", &format!("{POLICY}store: {store}")).unwrap();
    loaded.settings.key = KeySource::File { path: secret.path().into() };
    let limiter = Arc::new(tollgate_backend::limiter(loaded, Refunds::ByResponses).unwrap());
    limiter.store().started().await;
    let sync = TenantSync::start(Arc::clone(&limiter));
    (limiter, sync)
}

fn redis(server: &Server) -> String {
    format!("{{ redis: {{ {PATIENT}, {} }} }}", shards(&[server]))
}

fn memcached(server: &Memcached) -> String {
    format!("{{ memcached: {{ servers: '{}', deadline: 10s }} }}", server.address())
}

pub(crate) fn tenant(name: &str, plan: Option<&str>, own: Option<u64>) -> Tenant {
    let own = own.map(|quota| TenantQuota { limit: "calls".into(), quota, burst: None });
    let (plan, quotas) = (plan.map(Into::into), own.into_iter().collect());
    Tenant { name: name.into(), plan, quotas }
}

pub(crate) type Node = (Arc<Limiter<Backend>>, TenantSync);

pub(crate) async fn set(
    (limiter, sync): &Node,
    tenant: &Tenant,
) -> Result<usize, TenantStoreError> {
    let mut batch = TenantBatch::default();
    batch.set(tenant).unwrap();
    sync.apply(limiter.now(), batch).await.map(|changed| changed.after)
}

pub(crate) async fn remove((limiter, sync): &Node, name: &str) {
    let mut batch = TenantBatch::default();
    batch.remove(name);
    sync.apply(limiter.now(), batch).await.unwrap();
}

/// Returns the quota of a tenant in the node's policy.
pub(crate) fn quota((limiter, _): &Node, name: &str) -> u64 {
    let subject = [("org", Some(name))];
    let named = Named { limit: "calls", cost: Cost::ONE, subject: &subject };
    let plan = limiter.policy().plan_named([named], limiter.key()).unwrap();
    plan.planned[0].limit.capacity()
}

/// Waits until the periodic checks of the node have found this quota.
async fn until_quota(node: &Node, name: &str, expected: u64) {
    let found = async {
        while quota(node, name) != expected {
            sleep(Duration::from_millis(5)).await;
        }
    };
    let is_found = timeout(PATIENCE, found).await;
    is_found.unwrap_or_else(|_| panic!("{name} has {}, not {expected}", quota(node, name)));
}

async fn are_shared(store: &str) {
    let (a, b) = (node(store).await, node(store).await);
    assert!(a.1.loaded(PATIENCE).await && b.1.loaded(PATIENCE).await);
    assert_eq!(quota(&a, "acme"), 3);
    assert_eq!(set(&a, &tenant("acme", Some("pro"), None)).await, Ok(1));
    assert_eq!(quota(&a, "acme"), 20, "at once on the node that received it");
    until_quota(&b, "acme", 20).await;
    // A node that has not read the latest change of a partition keeps this change when it writes
    // the partition.
    assert_eq!(set(&b, &tenant("acme", Some("pro"), Some(7))).await, Ok(1));
    assert_eq!(set(&a, &tenant("other", None, Some(9))).await, Ok(2));
    until_quota(&a, "acme", 7).await;
    until_quota(&b, "other", 9).await;
    remove(&a, "acme").await;
    until_quota(&b, "acme", 3).await;
    // A node that starts later finds the tenants, although the nodes that set them have stopped.
    drop((a, b));
    let later = node(store).await;
    assert!(later.1.loaded(PATIENCE).await);
    assert_eq!((quota(&later, "acme"), quota(&later, "other")), (3, 9));
    let TenantStorage::InStore { is_loaded: true, failure: None } = later.1.storage() else {
        panic!("{:?}", later.1.storage())
    };
    // This import replaces all tenants.
    let mut batch = TenantBatch::replacing();
    for index in 0..3_000 {
        batch.set(&tenant(&format!("t{index}"), Some("pro"), Some(index + 1))).unwrap();
    }
    let other = node(store).await;
    assert!(other.1.loaded(PATIENCE).await);
    let changed = later.1.apply(later.0.now(), batch).await.unwrap();
    assert_eq!((changed.before, changed.after), (1, 3_000));
    until_quota(&other, "other", 3).await;
    for index in 0..3_000 {
        until_quota(&other, &format!("t{index}"), index + 1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_share_tenants_in_redis() {
    let server = Server::start().await;
    are_shared(&redis(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_share_tenants_in_memcached() {
    let server = Memcached::start();
    are_shared(&memcached(&server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_restore_tenants_that_the_server_lost() {
    let server = Server::start().await;
    let store = redis(&server);
    let a = node(&store).await;
    for name in ["acme", "other", "third"] {
        set(&a, &tenant(name, Some("pro"), None)).await.unwrap();
    }
    let mut connection = server.connect().await;
    ::redis::cmd("FLUSHALL").exec_async(&mut connection).await.unwrap();
    a.1.refresh().await.unwrap();
    let later = node(&store).await;
    assert!(later.1.loaded(PATIENCE).await);
    assert_eq!(["acme", "other", "third"].map(|name| quota(&later, name)), [20; 3]);
    // Every document expires, so a store that is no longer used does not keep the documents
    // forever.
    let keys: Vec<String> =
        ::redis::cmd("KEYS").arg("tg1:{tenants*").query_async(&mut connection).await.unwrap();
    assert!(keys.len() >= 4, "{keys:?}");
    for key in keys {
        let left: i64 = ::redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.unwrap();
        assert!(left > 3_600_000, "{key} ends in {left} ms");
    }
}

/// A node stopped after it had written a document and before it wrote the index, so the index lacks
/// the change.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_the_index_misses_is_found() {
    let server = Server::start().await;
    let store = redis(&server);
    let a = node(&store).await;
    set(&a, &tenant("first", Some("pro"), None)).await.unwrap();
    let mut connection = server.connect().await;
    let keys = ["version", "document"].map(|part| format!("tg1:{{tenants}}:{part}"));
    let mut dumps = Vec::new();
    for key in &keys {
        let bytes: Vec<u8> =
            ::redis::cmd("DUMP").arg(key).query_async(&mut connection).await.unwrap();
        dumps.push(bytes);
    }
    set(&a, &tenant("acme", Some("pro"), None)).await.unwrap();
    drop(a);
    for (key, dump) in keys.iter().zip(dumps) {
        let mut restore = ::redis::cmd("RESTORE");
        restore.arg(key).arg(0).arg(dump).arg("REPLACE");
        restore.exec_async(&mut connection).await.unwrap();
    }
    let later = node(&store).await;
    assert!(later.1.loaded(PATIENCE).await);
    let found = async {
        // Each check compares one partition.
        while quota(&later, "acme") != 20 {
            later.1.refresh().await.unwrap();
        }
    };
    timeout(PATIENCE, found).await.expect("the sweep finds the partition");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_keeps_the_last_tenants_and_a_node_that_starts_uses_the_default() {
    let server = Server::start().await;
    let store = redis(&server);
    let a = node(&store).await;
    set(&a, &tenant("acme", Some("pro"), None)).await.unwrap();
    server.freeze();
    let refused = set(&a, &tenant("acme", Some("pro"), Some(5))).await.unwrap_err();
    assert!(matches!(refused, TenantStoreError::Store { stored: 0, .. }), "{refused}");
    assert_eq!(quota(&a, "acme"), 20);
    assert!(a.1.refresh().await.is_err());
    let TenantStorage::InStore { is_loaded: true, failure: Some(failure) } = a.1.storage() else {
        panic!("{:?}", a.1.storage())
    };
    let errors = [StoreError::TimedOut, StoreError::Unavailable].map(|error| error.to_string());
    assert!(errors.contains(&failure), "{failure}");
    let started = node(&store).await;
    assert!(!started.1.loaded(Duration::from_millis(50)).await);
    assert_eq!(quota(&started, "acme"), 3, "the limit is on, with the default");
    server.thaw();
    until_quota(&started, "acme", 20).await;
}

/// Run this test with `--release -- --nocapture` to print the measured times.
#[tokio::test(flavor = "multi_thread")]
async fn a_million_tenants_are_loaded() {
    let server = Server::start().await;
    let cached = Memcached::start();
    for store in [redis(&server), memcached(&cached)] {
        let a = node(&store).await;
        let mut batch = TenantBatch::default();
        for index in 0..MAX_TENANTS {
            let own = (index % 4 == 0).then_some(index as u64 + 1);
            batch.set(&tenant(&format!("tenant-{index:07}"), Some("pro"), own)).unwrap();
        }
        let began = std::time::Instant::now();
        let changed = a.1.apply(a.0.now(), batch).await.unwrap();
        let stored = began.elapsed();
        assert_eq!(changed.after, MAX_TENANTS);
        let began = std::time::Instant::now();
        let later = node(&store).await;
        assert!(later.1.loaded(PATIENCE).await);
        let loaded = began.elapsed();
        assert_eq!(later.0.tenants().len(), MAX_TENANTS);
        let began = std::time::Instant::now();
        set(&a, &tenant("tenant-0000001", Some("pro"), Some(7))).await.unwrap();
        let changed = began.elapsed();
        until_quota(&later, "tenant-0000001", 7).await;
        let elsewhere = began.elapsed();
        println!("{store}: stored {stored:?}, loaded {loaded:?}");
        println!("one change {changed:?}, in force on the other node after {elsewhere:?}");
    }
}
