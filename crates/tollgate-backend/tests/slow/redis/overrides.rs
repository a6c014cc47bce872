//! Overrides that nodes share.

use std::io::Write;
use std::sync::Arc;

use tollgate::model::{KeyedHash, Millis, Subject, Value};
use tollgate::overrides::{
    Effect, Override, OverrideChange, OverrideScope, OverrideStorage, OverrideStore,
    OverrideStoreError, OverrideTarget,
};
use tollgate::{HashKey, Limiter};
use tollgate_backend::{Backend, OverrideSync, Refunds};
use tollgate_policy::KeySource;

use crate::kit::Server;
use crate::redis::fleet::{PATIENT, loaded, shards};

/// Starts a connected node over `servers`, with the secret of all nodes.
async fn node(servers: &[&Server]) -> (Arc<Limiter<Backend>>, OverrideSync) {
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    secret.write_all(b"the secret of every node of this test").unwrap();
    let mut loaded = loaded(&format!("{PATIENT}, {}", shards(servers)));
    loaded.settings.key = KeySource::File { path: secret.path().into() };
    let limiter = Arc::new(tollgate_backend::limiter(loaded, Refunds::ByResponses).unwrap());
    for shard in limiter.store().started().await {
        assert!(shard.is_served(), "{shard:?}");
    }
    let kept = OverrideSync::start(Arc::clone(&limiter));
    (limiter, kept)
}

fn target(user: &str) -> OverrideScope {
    let hash = HashKey::from_secret(b"a test's key").hash(user.as_bytes());
    let key = HashKey::from_secret(b"a test's key");
    let veiled = Subject::new([("token", Value::Hashed(hash))], &key);
    OverrideScope { limit: Some("core".into()), target: OverrideTarget::subject(&veiled) }
}

async fn set(
    limiter: &Limiter<Backend>,
    kept: &OverrideSync,
    user: &str,
) -> Result<(), OverrideStoreError> {
    let now = limiter.now();
    let (effect, reason) = (Effect::Quota { quota: 50, burst: None }, "a test".into());
    let expires_at = now.after(Millis::from_secs(3_600));
    let one = Override { target: target(user), effect, expires_at, reason };
    kept.change(now, OverrideChange::Set(one)).await.map(drop)
}

fn held(kept: &OverrideSync) -> usize {
    kept.table().overrides().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_changes_the_others_find_and_nobody_writes_over_another() {
    let (one, two) = (Server::start().await, Server::start().await);
    let servers = [&one, &two];
    let (limiter_a, a) = node(&servers).await;
    let (limiter_b, b) = node(&servers).await;
    set(&limiter_a, &a, "1").await.unwrap();
    // The node has not read the first override yet, and keeps it.
    set(&limiter_b, &b, "2").await.unwrap();
    assert_eq!(held(&b), 2);
    a.refresh().await.unwrap();
    assert_eq!(a.table(), b.table());
    a.change(limiter_a.now(), OverrideChange::Remove(target("2"))).await.unwrap();
    let again = a.change(limiter_a.now(), OverrideChange::Remove(target("2"))).await;
    assert_eq!(again.unwrap_err(), OverrideStoreError::Missing);
    b.refresh().await.unwrap();
    assert_eq!((held(&b), b.storage()), (1, OverrideStorage::InStore { failure: None }));
    // A node that starts later finds them, although the nodes that set them have stopped.
    drop((limiter_a, a, limiter_b, b));
    let (_limiter, later) = node(&servers).await;
    later.refresh().await.unwrap();
    assert_eq!(held(&later), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_lost_is_put_back_and_has_an_end() {
    let server = Server::start().await;
    let (limiter, kept) = node(&[&server]).await;
    set(&limiter, &kept, "1").await.unwrap();
    let mut connection = server.connect().await;
    redis::cmd("FLUSHALL").exec_async(&mut connection).await.unwrap();
    kept.refresh().await.unwrap();
    let (_other, later) = node(&[&server]).await;
    later.refresh().await.unwrap();
    assert_eq!(later.table(), kept.table());
    for part in ["version", "document"] {
        let mut operation = redis::cmd("PTTL");
        let left: i64 = operation
            .arg(format!("tg1:{{overrides}}:{part}"))
            .query_async(&mut connection)
            .await
            .unwrap();
        assert!(left > 3_600_000, "{part} ends in {left} ms");
    }
}

/// A replica that had not received the removal was promoted.
#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_was_removed_does_not_come_back_by_a_failover() {
    let server = Server::start().await;
    let (limiter, kept) = node(&[&server]).await;
    set(&limiter, &kept, "1").await.unwrap();
    let mut connection = server.connect().await;
    let keys = ["version", "document"].map(|part| format!("tg1:{{overrides}}:{part}"));
    let mut dumps = Vec::new();
    for key in &keys {
        let dump: Vec<u8> = redis::cmd("DUMP").arg(key).query_async(&mut connection).await.unwrap();
        dumps.push(dump);
    }
    kept.change(limiter.now(), OverrideChange::Remove(target("1"))).await.unwrap();
    for (key, dump) in keys.iter().zip(dumps) {
        let mut restore = redis::cmd("RESTORE");
        restore.arg(key).arg(0).arg(dump).arg("REPLACE");
        restore.exec_async(&mut connection).await.unwrap();
    }
    kept.refresh().await.unwrap();
    let (_other, later) = node(&[&server]).await;
    later.refresh().await.unwrap();
    assert_eq!((held(&kept), held(&later)), (0, 0));
    assert_eq!(later.table().version(), kept.table().version());
}

/// A node of another version, or another program, wrote a document that this node cannot read.
#[tokio::test(flavor = "multi_thread")]
async fn overrides_that_cannot_be_read_are_reported_and_the_last_ones_stay() {
    let server = Server::start().await;
    let (limiter, kept) = node(&[&server]).await;
    set(&limiter, &kept, "1").await.unwrap();
    let mut version = kept.table().version().changes.saturating_add(1).to_be_bytes().to_vec();
    version.extend([7; 8]);
    let mut connection = server.connect().await;
    for (part, bytes) in [("version", version), ("document", vec![0xfe, 1, 2])] {
        let key = format!("tg1:{{overrides}}:{part}");
        redis::cmd("SET").arg(key).arg(bytes).exec_async(&mut connection).await.unwrap();
    }
    assert!(kept.refresh().await.is_err());
    let OverrideStorage::InStore { failure: Some(failure) } = kept.storage() else {
        panic!("{kept:?}")
    };
    assert!(failure.contains("the same version on every node"), "{failure}");
    assert_eq!(held(&kept), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_server_the_last_ones_stay_and_no_change_is_made() {
    let server = Server::start().await;
    let (limiter, kept) = node(&[&server]).await;
    set(&limiter, &kept, "1").await.unwrap();
    drop(server);
    assert!(kept.refresh().await.is_err());
    assert!(matches!(set(&limiter, &kept, "2").await, Err(OverrideStoreError::Store(_))));
    assert_eq!(held(&kept), 1);
    assert!(matches!(kept.storage(), OverrideStorage::InStore { failure: Some(_) }));
}
