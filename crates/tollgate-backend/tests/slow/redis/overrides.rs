//! Overrides that nodes share.

use std::io::Write;
use std::sync::Arc;

use tollgate::model::{KeyedHash, Millis, StoreError, Subject, Value};
use tollgate::overrides::{
    Effect, NEVER, Override, OverrideChange, OverrideScope, OverrideStorage, OverrideStore,
    OverrideStoreError, OverrideTarget,
};
use tollgate::{HashKey, Limiter};
use tollgate_backend::{Backend, MAX_LOCAL_OVERRIDES, OverrideSync, Refunds};
use tollgate_policy::KeySource;
use tollgate_redis::function_library;

use crate::kit::{Server, Version};
use crate::redis::fleet::{PATIENT, loaded, shards};
use crate::redis::pairs::served;

/// Starts a node over `servers`, with the secret of all nodes, and waits until the node is
/// connected.
async fn node(servers: &[&Server]) -> (Arc<Limiter<Backend>>, OverrideSync) {
    node_with(servers, "").await
}

/// Starts a node like [`node`], with more settings of the store.
async fn node_with(servers: &[&Server], more: &str) -> (Arc<Limiter<Backend>>, OverrideSync) {
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    secret.write_all(b"the secret of every node of this test").unwrap();
    let mut loaded = loaded(&format!("{PATIENT}, {}{more}", shards(servers)));
    loaded.settings.key = KeySource::File { path: secret.path().into() };
    let limiter = Arc::new(tollgate_backend::limiter(loaded, Refunds::ByResponses).unwrap());
    served(limiter.store()).await;
    let kept = OverrideSync::start(Arc::clone(&limiter));
    (limiter, kept)
}

const IN_STORE: OverrideStorage = OverrideStorage::InStore { failure: None, pending: Vec::new() };

pub(crate) fn target(user: &str) -> OverrideScope {
    let hash = HashKey::from_secret(b"a test's key").hash(user.as_bytes());
    let key = HashKey::from_secret(b"a test's key");
    let veiled = Subject::new([("token", Value::Hashed(hash))], &key);
    OverrideScope { limit: Some("core".into()), target: OverrideTarget::subject(&veiled) }
}

pub(crate) async fn set(
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

pub(crate) fn held(kept: &OverrideSync) -> usize {
    kept.table().overrides().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_changes_the_others_find_and_nobody_writes_over_another() {
    let (one, two) = (Server::start().await, Server::start().await);
    let servers = [&one, &two];
    let (limiter_a, a) = node(&servers).await;
    let (limiter_b, b) = node(&servers).await;
    set(&limiter_a, &a, "1").await.unwrap();
    // The node has not read the first override yet. The node must keep the first override when it
    // stores another override.
    set(&limiter_b, &b, "2").await.unwrap();
    assert_eq!(held(&b), 2);
    a.refresh().await.unwrap();
    assert_eq!(a.table(), b.table());
    a.change(limiter_a.now(), OverrideChange::Remove(target("2"))).await.unwrap();
    let again = a.change(limiter_a.now(), OverrideChange::Remove(target("2"))).await;
    assert_eq!(again.unwrap_err(), OverrideStoreError::Missing);
    b.refresh().await.unwrap();
    assert_eq!((held(&b), b.storage()), (1, IN_STORE));
    // A node that starts later finds the overrides, although the nodes that set them have stopped.
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

/// The defect: a server that had the version and not the content of the overrides accepted no
/// change, and no node restored the content.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_without_its_document_prevented_all_changes() {
    let server = Server::start().await;
    let (limiter, kept) = node(&[&server]).await;
    set(&limiter, &kept, "1").await.unwrap();
    for part in ["version", "document"] {
        server.execute(&["DEL", &format!("tg1:{{overrides}}:{part}")]).await;
        kept.refresh().await.unwrap();
        let (_other, later) = node(&[&server]).await;
        later.refresh().await.unwrap();
        assert_eq!(later.table(), kept.table());
    }
    drop((limiter, kept));
    server.execute(&["DEL", "tg1:{overrides}:document"]).await;
    let (limiter, later) = node(&[&server]).await;
    set(&limiter, &later, "2").await.unwrap();
    assert_eq!(held(&later), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_without_an_end_is_stored_for_a_year_and_again_by_a_node_that_starts() {
    let server = Server::start().await;
    let (limiter, kept) = node(&[&server]).await;
    let effect = Effect::Quota { quota: 50, burst: None };
    let one = Override { target: target("1"), effect, expires_at: NEVER, reason: "a test".into() };
    kept.change(limiter.now(), OverrideChange::Set(one)).await.unwrap();
    let mut connection = server.connect().await;
    let key = "tg1:{overrides}:document";
    let day = 86_400_000;
    redis::cmd("PEXPIRE").arg(key).arg(day).exec_async(&mut connection).await.unwrap();
    let (_other, later) = node(&[&server]).await;
    later.refresh().await.unwrap();
    later.refresh().await.unwrap();
    assert_eq!(later.table(), kept.table());
    let left: i64 = redis::cmd("PTTL").arg(key).query_async(&mut connection).await.unwrap();
    assert!((366 * day..368 * day).contains(&left), "it ends in {left} ms");
}

/// The promoted replica had not received the removal of the override.
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
    let OverrideStorage::InStore { failure: Some(failure), .. } = kept.storage() else {
        panic!("{kept:?}")
    };
    assert!(failure.contains("the same version on every node"), "{failure}");
    assert_eq!(held(&kept), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_can_be_set_on_one_node_while_its_shard_is_down() {
    let server = Server::start().await;
    let (limiter_a, a) = node(&[&server]).await;
    let (limiter_b, b) = node(&[&server]).await;
    for user in ["kept", "removed", "changed elsewhere"] {
        set(&limiter_a, &a, user).await.unwrap();
    }
    b.refresh().await.unwrap();
    server.freeze();
    assert!(a.refresh().await.is_err());
    let quota = |quota| Effect::Quota { quota, burst: None };
    for (user, effect) in [("new", Effect::Blocked), ("changed elsewhere", quota(1))] {
        let change = changed(&limiter_a, user, effect);
        assert!(a.change(limiter_a.now(), change).await.unwrap().pending.is_some());
    }
    let removal = OverrideChange::Remove(target("removed"));
    let result = a.change(limiter_a.now(), removal.clone()).await.unwrap();
    assert!(result.before.is_some() && result.pending.is_some());
    let missing = a.change(limiter_a.now(), removal).await.unwrap_err();
    assert_eq!(missing, OverrideStoreError::Missing, "it was removed on this node");
    assert_eq!(effects(&a), [Some(quota(50)), None, Some(quota(1)), Some(Effect::Blocked)]);
    let OverrideStorage::InStore { pending, .. } = a.storage() else { panic!("{a:?}") };
    assert_eq!(pending, ["new", "changed elsewhere", "removed"].map(target));
    assert_eq!(held(&b), 3, "the other node has no change yet");

    server.thaw();
    let change = changed(&limiter_b, "changed elsewhere", quota(2));
    while b.change(limiter_b.now(), change.clone()).await.unwrap().pending.is_some() {}
    until_stored(&b).await;
    until_stored(&a).await;
    b.refresh().await.unwrap();
    for kept in [&a, &b] {
        let expected = [Some(quota(50)), None, Some(quota(2)), Some(Effect::Blocked)];
        assert_eq!(effects(kept), expected, "what another node stored later stays");
    }
    assert_eq!(a.table(), b.table());
}

/// An operator may need the override at once, for example to block an abusive client.
#[tokio::test(flavor = "multi_thread")]
async fn an_override_that_the_user_may_not_store_is_in_force_on_its_node() {
    let server = Server::start().await;
    let user = Version::user_below("# Without permission to load code");
    let user: Vec<_> = user.iter().map(String::as_str).collect();
    server.execute(&[&["ACL", "SETUSER"], &user[..]].concat()).await;
    server.execute(&["FUNCTION", "LOAD", function_library()]).await;
    let mut password = tempfile::NamedTempFile::new().unwrap();
    password.write_all(b"password\n").unwrap();
    let credentials =
        format!(", user: tollgate, password: {{ file: \"{}\" }}", password.path().display());
    let (limiter, kept) = node_with(&[&server], &credentials).await;
    set(&limiter, &kept, "1").await.unwrap();
    kept.refresh().await.unwrap();
    assert_eq!((held(&kept), kept.storage()), (1, IN_STORE));

    server.execute(&["ACL", "SETUSER", "tollgate", "-fcall"]).await;
    let change = changed(&limiter, "2", Effect::Blocked);
    let result = kept.change(limiter.now(), change).await.unwrap();
    assert_eq!((held(&kept), result.pending), (2, Some(StoreError::NotPermitted)));
    assert_eq!(kept.refresh().await, Err(StoreError::NotPermitted));
    assert!(StoreError::NotPermitted.to_string().contains("deploy/redis-acl.txt"));

    server.execute(&["ACL", "SETUSER", "tollgate", "+fcall"]).await;
    until_stored(&kept).await;
    assert_eq!(held(&kept), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_keeps_a_hundred_changes_for_a_shard_that_is_down() {
    let server = Server::start().await;
    let (limiter, kept) = node(&[&server]).await;
    drop(server);
    assert!(kept.refresh().await.is_err());
    for number in 0..MAX_LOCAL_OVERRIDES {
        set(&limiter, &kept, &number.to_string()).await.unwrap();
    }
    let full = OverrideStoreError::LocalFull { changes: MAX_LOCAL_OVERRIDES };
    assert_eq!(set(&limiter, &kept, "one more").await, Err(full));
    set(&limiter, &kept, "7").await.unwrap();
    kept.change(limiter.now(), OverrideChange::Remove(target("8"))).await.unwrap();
    assert_eq!(held(&kept), MAX_LOCAL_OVERRIDES - 1);
    set(&limiter, &kept, "one more").await.unwrap();
}

fn changed(limiter: &Limiter<Backend>, user: &str, effect: Effect) -> OverrideChange {
    let expires_at = limiter.now().after(Millis::from_secs(3_600));
    let reason = "a test".into();
    OverrideChange::Set(Override { target: target(user), effect, expires_at, reason })
}

/// Returns the effects on the four targets of a test.
fn effects(kept: &OverrideSync) -> [Option<Effect>; 4] {
    let table = kept.table();
    ["kept", "removed", "changed elsewhere", "new"].map(|user| {
        let target = target(user);
        table.overrides().iter().find(|one| one.target == target).map(|one| one.effect)
    })
}

async fn until_stored(kept: &OverrideSync) {
    let stored = async {
        while kept.refresh().await.is_err() || kept.storage() != IN_STORE {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), stored).await.expect("it is stored");
}
