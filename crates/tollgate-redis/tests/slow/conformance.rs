//! Runs the conformance suite of all stores on each supported server version. The step runs as a
//! function if the version supports functions, as a script, and in the module with keys and with
//! tables.

use std::time::Duration;

use crate::kit::{QUICK, Server, Version, on_every_version, wait_for_replica};
use crate::shard::Way;
use redis::aio::MultiplexedConnection;
use tollgate_conformance::{PlainHash, check};
use tollgate_core::{CasOutcome, Charge, Readings, SharedBlob, Store, StoreError, Timestamp};
use tollgate_redis::{
    CircuitState, Credentials, Endpoint, Keys, LinkLimits, Redis, RedisShard, RuntimeChoice,
    Secret, SecretSource, ShardSettings, StepRuntime, function_library,
};

/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two checks whether a store has found its server.
const PAUSE: Duration = Duration::from_millis(1);

on_every_version! {
    the_suite_passes
    the_suite_passes_as_the_shipped_user
    the_suite_passes_on_a_shard_before_and_after_a_failover
    the_shipped_user_replaces_documents
}

fn keys() -> Keys {
    Keys::new(PlainHash)
}

async fn the_suite_passes(version: Version) {
    for way in Way::of(version) {
        let server = way.start(version, &[]).await;
        let store = Redis::new(server.connect().await, keys(), way.choice()).await.unwrap();
        assert_eq!(store.runtime(), way.runs());
        check(&store, &format!("{way:?}")).await;
        assert_eq!(store.runtime(), way.runs());
        server.assert_every_key_ends().await;
    }
}

async fn the_suite_passes_as_the_shipped_user(version: Version) {
    for way in Way::of(version) {
        let server = way.start(version, &[]).await;
        admit_shipped_user(&server, *way).await;
        let connection = server.connect_as("tollgate", "password").await;
        let store = Redis::new(connection, keys(), way.choice()).await.unwrap();
        assert_eq!(store.runtime(), way.runs());
        check(&store, &format!("{way:?}")).await;
        let mut user = server.connect_as("tollgate", "password").await;
        for words in [&["KEYS", "*"][..], &["GET", "tg1:x"], &["SET", "other", "1"], &["FLUSHALL"]]
        {
            let refused = redis::cmd(words[0]).arg(&words[1..]).exec_async(&mut user).await;
            assert_eq!(refused.unwrap_err().code(), Some("NOPERM"), "{words:?}");
        }
    }
}

/// The nodes use the shipped user without the permission to load code, and the server is also
/// restarted.
#[tokio::test]
async fn the_suite_passes_with_a_library_that_an_administrator_loaded() {
    for version in [Version::System, Version::Redis82, Version::Valkey91] {
        let user = Version::user_below("# Without permission to load code");
        let words: Vec<_> = user.iter().map(String::as_str).collect();
        let arguments = [&["--user"], &words[..]].concat();
        let mut server = Server::start_version(version, &arguments).await;
        let connection = server.connect_as("tollgate", "password").await;
        let refused = Redis::new(connection, keys(), RuntimeChoice::Best).await;
        assert!(refused.is_err(), "{version:?}");
        server.execute(&["FUNCTION", "LOAD", function_library()]).await;
        let store = shard(&server, &[], RuntimeChoice::Best);
        is_on(&store, [&server]).await;
        check(&store, "before").await;
        assert_eq!(store.runtime(), StepRuntime::Function);
        server.execute(&["SAVE"]).await;
        server.kill();
        let lost = async {
            while store.status()[0].circuit_state == CircuitState::Closed {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, lost).await.expect("the store loses its server");
        server.start_again(&arguments);
        is_on(&store, [&server]).await;
        check(&store, "after").await;
        assert_eq!(store.runtime(), StepRuntime::Function);
    }
}

async fn the_shipped_user_replaces_documents(version: Version) {
    for way in Way::of(version) {
        let server = way.start(version, &[]).await;
        admit_shipped_user(&server, *way).await;
        let store = shard(&server, &[], way.choice());
        is_on(&store, [&server]).await;
        replaces_documents(&store, &format!("{way:?}")).await;
        server.assert_every_key_ends().await;
    }
}

/// Overrides and tenants are such documents. With a script, which the user may not run, no node
/// could change them.
#[tokio::test]
async fn documents_are_replaced_without_permission_to_load_code() {
    let user = Version::user_below("# Without permission to load code");
    let words: Vec<_> = user.iter().map(String::as_str).collect();
    for version in [Version::System, Version::Redis82, Version::Valkey91] {
        for way in [Way::Function, Way::Module] {
            let server = way.start(version, &[]).await;
            server.execute(&[&["ACL", "SETUSER"], &words[..]].concat()).await;
            if way == Way::Module {
                admit_to_module(&server).await;
            }
            server.execute(&["FUNCTION", "LOAD", function_library()]).await;
            let store = shard(&server, &[], way.choice());
            is_on(&store, [&server]).await;
            replaces_documents(&store, &format!("{version:?} {way:?}")).await;
            server.assert_every_key_ends().await;
            server.execute(&["FUNCTION", "FLUSH"]).await;
            let next = document("4");
            let replaced = store.replace_shared_blob("rules", b"3", &next, PATIENCE).await;
            assert_eq!(replaced, Err(StoreError::NotPermitted));
        }
    }
}

async fn replaces_documents(store: &RedisShard, whose: &str) {
    for (before, after, expected) in [
        ("", "1", CasOutcome::Stored),
        ("", "2", CasOutcome::Stale),
        ("1", "3", CasOutcome::Stored),
    ] {
        let (before, after) = (before.as_bytes(), document(after));
        let replaced = store.replace_shared_blob("rules", before, &after, PATIENCE).await;
        assert_eq!(replaced, Ok(expected), "{whose}");
    }
    assert_eq!(store.shared_blob("rules").await, Ok(document("3")), "{whose}");
}

fn document(version: &str) -> SharedBlob {
    SharedBlob { version: version.into(), bytes: format!("rules {version}").into() }
}

/// The suite runs through batchers as the shipped user, and the replica answers read-only calls.
/// After the failover, the new primary has all data that the suite wrote, and the suite continues.
async fn the_suite_passes_on_a_shard_before_and_after_a_failover(version: Version) {
    for way in Way::of(version) {
        let mut primary = way.start(version, &QUICK).await;
        let replica = way.start(version, &QUICK).await;
        for server in [&primary, &replica] {
            admit_shipped_user(server, *way).await;
        }
        replica.follow(&primary).await;
        let store = shard(&primary, &[&replica], way.choice());
        is_on(&store, [&primary, &replica]).await;
        let watch = primary.connect().await;
        check(&InStep { store: &store, watch }, "before").await;
        assert_eq!(store.runtime(), way.runs());
        assert!(store.status()[1].counts.jobs > 0, "the replica answered nothing");
        primary.assert_every_key_ends().await;

        primary.is_followed().await;
        primary.kill();
        replica.promote().await;
        is_on(&store, [&replica]).await;
        replica.assert_every_key_ends().await;
        check(&store, "after").await;
        assert_eq!(store.runtime(), way.runs());
        replica.assert_every_key_ends().await;
    }
}

/// A shard's store for a suite that reads the data that it has just changed. Every call first waits
/// until the replica has all earlier writes.
struct InStep<'s> {
    store: &'s RedisShard,
    /// A connection to the primary.
    watch: MultiplexedConnection,
}

impl Store for InStep<'_> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        wait_for_replica(&mut self.watch.clone()).await;
        self.store.apply(now, charges).await
    }
}

fn shard(primary: &Server, replicas: &[&Server], choice: RuntimeChoice) -> RedisShard {
    let endpoint = |server: &Server| {
        let endpoint: Endpoint = server.url().parse().unwrap();
        endpoint.with_credentials(Credentials {
            user: Some("tollgate".into()),
            password: Some(SecretSource::Inline(Secret::new("password"))),
        })
    };
    let replicas = replicas.iter().map(|replica| endpoint(replica)).collect();
    let mut settings = ShardSettings::replicated(endpoint(primary), replicas);
    settings.link = LinkLimits {
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat_answer: PATIENCE,
        seek: PATIENCE,
        ..LinkLimits::default()
    };
    RedisShard::open(&settings, keys(), choice).with_deadline(PATIENCE)
}

/// Waits until the store's first batchers are connected to `servers`, in this order.
async fn is_on<const N: usize>(store: &RedisShard, servers: [&Server; N]) {
    let urls = servers.map(|server| Some(server.url()));
    let found = async {
        loop {
            let batchers = store.status().into_iter().take(N);
            let open = batchers
                .filter(|batcher| batcher.circuit_state == CircuitState::Closed)
                .map(|batcher| batcher.address);
            if open.eq(urls.iter().cloned()) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("the store finds its servers");
}

/// Creates the shipped user on `server`. If `way` uses the module, adds the permissions of
/// `docs/module.md`.
async fn admit_shipped_user(server: &Server, way: Way) {
    let words = server.version().shipped_user();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    server.execute(&[&["ACL", "SETUSER"], &words[..]].concat()).await;
    if matches!(way, Way::Module | Way::Tables) {
        admit_to_module(server).await;
    }
}

/// Adds the permissions of `docs/module.md` to the shipped user.
async fn admit_to_module(server: &Server) {
    let commands = ["+tollgate.step", "+tollgate.tight", "+tollgate.look"];
    server.execute(&[&["ACL", "SETUSER", "tollgate"], &commands[..]].concat()).await;
}
