//! The complete store on memcached servers, as a policy file configures the store.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use crate::memcached_kit::{Server, subject, take, window};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tollgate::model::{DecisionSource, KeyedHash, Millis, Store, Subject, Timestamp, Value};
use tollgate::overrides::{
    Effect, Override, OverrideChange, OverrideScope, OverrideStorage, OverrideStore,
    OverrideStoreError, OverrideTarget,
};
use tollgate::{Clock, HashKey, Limiter, SystemClock};
use tollgate_backend::{Backend, OpenError, OverrideSync, Refunds};
use tollgate_conformance::check_one_quota;
use tollgate_conformance::suite::check_charges_of_one_quota;
use tollgate_memcached::Address;
use tollgate_policy::{KeySource, LoadedPolicy, parse};

/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);

fn loaded(store: &str) -> LoadedPolicy {
    let policy = "
secret: { file: /run/key }
subjects: { address: { client_address: {} } }
limits: { core: { quota: 5, window: 1h, per: address } }
rules: [{ limits: core }]
";
    parse("test.yaml", &format!("{policy}store: {{ memcached: {store} }}")).unwrap()
}

fn open(store: &str) -> Result<Backend, OpenError> {
    let loaded = loaded(store);
    let key = HashKey::from_secret(b"a key of a test, long enough");
    Backend::open(&loaded.settings, key, &loaded.policy, Refunds::ByReceipts)
}

#[tokio::test]
async fn two_servers_are_a_store() {
    let servers = [Server::start(), Server::start()].map(|it| (it.address().to_string(), it));
    for layout in ["cell", "pairs"] {
        let [(one, _), (other, _)] = &servers;
        let store = format!("{{ servers: ['{one}', '{other}'], layout: {layout}, deadline: 10s }}");
        let store = open(&store).unwrap();
        store.started().await;
        match layout {
            // The layout with two items cannot store reservations.
            "pairs" => check_charges_of_one_quota(&store, layout).await,
            _ => check_one_quota(&store, layout).await,
        }
        let Backend::Memcached(fleet) = &store else { panic!("{store:?}") };
        assert_eq!(fleet.counts().fallback_decisions, 0);
    }
}

#[tokio::test]
async fn without_its_server_a_node_decides_by_its_share() {
    let mut server = Server::start();
    let store = format!("{{ servers: '{}', nodes: 5, deadline: 10s }}", server.address());
    let store = open(&store).unwrap();
    store.started().await;
    let (limit, subject) = (window("core", 10, Millis::from_secs(60)), subject("a"));
    let charges = [take(&limit, &subject)];
    assert_eq!(store.apply(NOW, &charges).await.unwrap().source(), DecisionSource::Store);
    server.kill();
    let mut admitted = 0;
    for _ in 0..20 {
        let readings = store.apply(NOW, &charges).await.unwrap();
        assert_ne!(readings.source(), DecisionSource::Store);
        admitted += u32::from(readings.all_admitted());
    }
    assert!((1..=2).contains(&admitted), "{admitted}: a fifth of what was left");
}

/// The unit would otherwise count only when the node receives its next request, perhaps after the
/// end of the window.
#[tokio::test]
async fn a_node_without_requests_charges_what_it_admitted_alone() {
    let mut server = Server::start();
    let store = open(&format!("{{ servers: '{}', deadline: 10s }}", server.address())).unwrap();
    store.started().await;
    let (limit, subject) = (window("core", 10, Millis::from_secs(3_600)), subject("a"));
    server.kill();
    let alone = store.apply(SystemClock.now(), &[take(&limit, &subject)]).await.unwrap();
    assert!(matches!(alone.source(), DecisionSource::Fallback(_)), "{alone:?}");
    server.revive();
    let Backend::Memcached(fleet) = &store else { panic!("{store:?}") };
    let charged = async {
        while fleet.counts().local_charges.charged == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, charged).await.expect("the unit is charged");
    let readings = store.apply(SystemClock.now(), &[take(&limit, &subject)]).await.unwrap();
    assert_eq!((readings.source(), readings[0].used), (DecisionSource::Store, 2));
}

#[tokio::test]
async fn a_server_far_away_is_asked_within_the_deadline_that_is_set_for_it() {
    let server = Server::start();
    // The delay is longer than every wait of a link with default settings.
    let port = far_away(server.address(), Duration::from_millis(300)).await;
    let store = open(&format!("{{ servers: '127.0.0.1:{port}', deadline: 10s }}")).unwrap();
    let (limit, subject) = (window("core", 10, Millis::from_secs(60)), subject("a"));
    let charges = [take(&limit, &subject)];
    assert_eq!(store.apply(NOW, &charges).await.unwrap().source(), DecisionSource::Store);
    // The pause is long enough for a heartbeat and its answer.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(store.apply(NOW, &charges).await.unwrap().source(), DecisionSource::Store);
}

/// Starts a proxy to `server` with this delay in each direction. Returns the port of the proxy.
async fn far_away(server: Address, delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(server.to_string()).await.unwrap();
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            tokio::spawn(carry(near_in, far_out, delay));
            tokio::spawn(carry(far_in, near_out, delay));
        }
    });
    port
}

/// Forwards bytes after the delay. Bytes that arrive during a delay wait for a delay of their own.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        tokio::time::sleep(delay).await;
        if to.write_all(&bytes[..count]).await.is_err() {
            break;
        }
    }
}

#[tokio::test]
async fn a_text_that_names_no_server_is_reported() {
    let error = open("{ servers: 'redis://h' }").unwrap_err().to_string();
    assert!(error.contains("store.memcached.servers") && error.contains("redis://h"), "{error}");
}

/// Starts a node over `servers`, with the secret of all nodes, and waits until the node is
/// connected.
async fn node(servers: &[&Server]) -> (Arc<Limiter<Backend>>, OverrideSync) {
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    secret.write_all(b"the secret of every node of this test").unwrap();
    let names: Vec<_> = servers.iter().map(|server| format!("'{}'", server.address())).collect();
    let mut loaded = loaded(&format!("{{ servers: [{}], deadline: 10s }}", names.join(", ")));
    loaded.settings.key = KeySource::File { path: secret.path().into() };
    let limiter = Arc::new(tollgate_backend::limiter(loaded, Refunds::ByResponses).unwrap());
    limiter.store().started().await;
    let kept = OverrideSync::start(Arc::clone(&limiter));
    (limiter, kept)
}

fn target(address: &str) -> OverrideScope {
    let key = HashKey::from_secret(b"a test's key");
    let hash = key.hash(address.as_bytes());
    let veiled = Subject::new([("address", Value::Hashed(hash))], &key);
    OverrideScope { limit: Some("core".into()), target: OverrideTarget::subject(&veiled) }
}

async fn set(
    limiter: &Limiter<Backend>,
    kept: &OverrideSync,
    whom: &str,
) -> Result<(), OverrideStoreError> {
    let now = limiter.now();
    let (effect, reason) = (Effect::Quota { quota: 50, burst: None }, "a test".into());
    let expires_at = now.after(Millis::from_secs(3_600));
    let one = Override { target: target(whom), effect, expires_at, reason };
    kept.change(now, OverrideChange::Set(one)).await.map(drop)
}

/// Waits until the periodic checks of the node have found this number of overrides.
async fn goes_by(kept: &OverrideSync, count: usize) {
    let found = async {
        while kept.table().overrides().len() != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("it does not find them");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_overrides_the_others_go_by_and_nobody_writes_over_another() {
    let (one, two) = (Server::start(), Server::start());
    let servers = [&one, &two];
    let (limiter_a, a) = node(&servers).await;
    let (limiter_b, b) = node(&servers).await;
    set(&limiter_a, &a, "1").await.unwrap();
    goes_by(&b, 1).await;
    let (of_a, of_b) = tokio::join!(set(&limiter_a, &a, "2"), set(&limiter_b, &b, "3"));
    assert_eq!((of_a, of_b), (Ok(()), Ok(())), "both at once");
    for kept in [&a, &b] {
        goes_by(kept, 3).await;
        assert_eq!(kept.storage(), OverrideStorage::InStore { failure: None, pending: Vec::new() });
    }
    assert_eq!(a.table(), b.table());
    a.change(limiter_a.now(), OverrideChange::Remove(target("2"))).await.unwrap();
    goes_by(&b, 2).await;
    // A node that starts later finds the overrides, although the nodes that set them have stopped.
    drop((limiter_a, a, limiter_b, b));
    let (_limiter, later) = node(&servers).await;
    goes_by(&later, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_that_memcached_lost_are_put_back_and_new_ones_wait_for_it() {
    let mut server = Server::start();
    let (limiter, kept) = node(&[&server]).await;
    set(&limiter, &kept, "1").await.unwrap();
    server.restart();
    let again = async {
        while kept.refresh().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("it finds its server again");
    let (_other, later) = node(&[&server]).await;
    goes_by(&later, 1).await;
    assert_eq!(later.table(), kept.table());
    server.kill();
    set(&limiter, &kept, "2").await.unwrap();
    assert_eq!(kept.table().overrides().len(), 2, "those that were read stay in force");
    let OverrideStorage::InStore { pending, .. } = kept.storage() else { panic!("{kept:?}") };
    assert_eq!(pending, [target("2")], "only this node has it");
}
