//! Runs the conformance suite of all stores on each supported server version. The step runs as a
//! function if the version supports functions, as a script, and in the module with keys and with
//! tables.

use std::time::Duration;

use crate::kit::{QUICK, Server, Version, on_every_version, wait_for_replica};
use crate::shard::Way;
use redis::aio::MultiplexedConnection;
use tollgate_conformance::{PlainHash, check};
use tollgate_core::{Charge, Readings, Store, StoreError, Timestamp};
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
        let commands = ["+tollgate.step", "+tollgate.tight", "+tollgate.look"];
        server.execute(&[&["ACL", "SETUSER", "tollgate"], &commands[..]].concat()).await;
    }
}
