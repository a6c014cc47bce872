//! Combinations of two stores, as a policy file configures them: memory, Redis and memcached.

use crate::memcached_kit::{Server, subject, take, window};
use tollgate::HashKey;
use tollgate::model::Percent;
use tollgate::model::{Millis, Store, Timestamp};
use tollgate_backend::{Backend, Refunds};
use tollgate_conformance::{check, check_one_quota};
use tollgate_policy::parse;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_123);

fn open(store: &str) -> Backend {
    let policy = "
secret: { file: /run/key }
subjects: { address: { client_address: {} } }
limits: { core: { quota: 5, window: 1h, per: address } }
rules: [{ limits: core }]
";
    let loaded = parse("test.yaml", &format!("{policy}store: {store}")).unwrap();
    let key = HashKey::from_secret(b"a key of a test, long enough");
    Backend::open(&loaded.settings, key, &loaded.policy, Refunds::ByReceipts).unwrap()
}

fn rollout(percent: u8, server: &Server) -> Backend {
    let servers = server.address();
    open(&format!(
        "{{ rollout: {{ percent: {percent}%, from: {{ memory: {{}} }}, \
         to: {{ memcached: {{ servers: '{servers}', deadline: 10s }} }} }} }}"
    ))
}

#[tokio::test]
async fn whatever_the_percentage_it_is_a_store() {
    let server = Server::start();
    for percent in [0, 40, 100] {
        let store = rollout(percent, &server);
        store.started().await;
        check_one_quota(&store, &format!("at {percent}%")).await;
    }
}

#[tokio::test]
async fn a_shadow_is_a_store() {
    let server = Server::start();
    let servers = server.address();
    let store = open(&format!(
        "{{ shadow: {{ store: {{ memory: {{}} }}, \
         shadow_store: {{ memcached: {{ servers: '{servers}', deadline: 10s }} }} }} }}"
    ));
    store.started().await;
    check(&store, "shadow").await;
}

#[tokio::test]
async fn who_moves_there_and_back_takes_along_what_it_used() {
    let server = Server::start();
    let store = rollout(0, &server);
    store.started().await;
    let Backend::Rollout(moving) = &store else { panic!("{store:?}") };
    let limit = window("core", 5, Millis::from_secs(3_600));
    let subject = subject("192.0.2.1");
    let mut admitted = 0;
    for percent in [0, 100, 100, 0, 100, 0, 0] {
        moving.percentage().set(Percent::new(percent).unwrap());
        let readings = store.apply(NOW, &[take(&limit, &subject)]).await.unwrap();
        admitted += u64::from(readings.all_admitted());
    }
    assert_eq!((admitted, moving.failed_transfers()), (5, 0));
    assert!(moving.transferred() >= 4, "{}", moving.transferred());
}
