//! The whole nesting over servers of memcached, as a policy file names them.

#[path = "../../tollgate-memcached/tests/kit/mod.rs"]
mod kit;

use kit::{Server, subject, take, window};
use tollgate::HashKey;
use tollgate::core::{Millis, Source, Store, Timestamp};
use tollgate_backend::{Backend, OpenError, Refunds};
use tollgate_conformance::{check, check_charges};
use tollgate_policy::{Loaded, parse};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);

fn loaded(store: &str) -> Loaded {
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
            // Two items have no place for reservations.
            "pairs" => check_charges(&store, layout).await,
            _ => check(&store, layout).await,
        }
        let Backend::Memcached(fleet) = &store else { panic!("{store:?}") };
        assert_eq!(fleet.counts().stood_in, 0);
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
    assert_eq!(store.apply(NOW, &charges).await.unwrap().source(), Source::Store);
    server.kill();
    let mut admitted = 0;
    for _ in 0..20 {
        let readings = store.apply(NOW, &charges).await.unwrap();
        assert_ne!(readings.source(), Source::Store);
        admitted += u32::from(readings.all_fit());
    }
    assert!((1..=2).contains(&admitted), "{admitted}: a fifth of what was left");
}

#[tokio::test]
async fn a_text_that_names_no_server_is_told() {
    let error = open("{ servers: 'redis://h' }").unwrap_err().to_string();
    assert!(error.contains("store.memcached.servers") && error.contains("redis://h"), "{error}");
}
