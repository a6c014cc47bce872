//! Shards of two servers each, and the store that combines the shards.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tollgate::model::{Charge, Readings, Store, StoreError, Timestamp};
use tollgate_backend::{Backend, ShardStatus};
use tollgate_redis::CircuitState;

use crate::kit::{QUICK, Server, Version, wait_for_replica};

/// The time limit of each wait of a test. A busy machine does not reach this limit.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two checks of a condition.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// A primary, and a replica in sync with the primary.
pub(crate) type Pair = [Server; 2];

/// Starts `count` pairs of a primary and a replica.
pub(crate) async fn pairs(version: Version, count: usize) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for _ in 0..count {
        let primary = Server::start_version(version, &QUICK).await;
        let replica = Server::start_version(version, &QUICK).await;
        replica.follow(&primary).await;
        pairs.push([primary, replica]);
    }
    pairs
}

/// Returns the settings of these shards in the syntax of the policy file.
pub(crate) fn words(pairs: &[Pair]) -> String {
    let shard = |(number, pair): (usize, &Pair)| {
        let [primary, replica] = pair.each_ref().map(Server::url);
        format!("s{number}: {{ primary: \"{primary}\", replicas: \"{replica}\" }}")
    };
    let shards: Vec<_> = pairs.iter().enumerate().map(shard).collect();
    format!("shards: {{ {} }}", shards.join(", "))
}

/// Waits until the replica of each shard serves reads.
pub(crate) async fn is_read_from(store: &Backend, pairs: &[Pair]) {
    until(|| {
        let status = store.status();
        status.iter().zip(pairs).all(|(shard, [_, replica])| {
            let batcher = &shard.batchers[1];
            batcher.circuit_state == CircuitState::Closed && batcher.address == Some(replica.url())
        })
    })
    .await;
}

/// Waits until `condition` is true.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let happens = async {
        while !condition() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, happens).await.expect("it did not happen");
}

/// Waits until every shard of `store` is served, and returns the status of the shards. The start
/// alone waits for at most [`START_WAIT`](tollgate_backend::START_WAIT), which a busy machine can
/// exceed.
pub(crate) async fn served(store: &Backend) -> Vec<ShardStatus> {
    store.started().await;
    until(|| store.status().iter().all(ShardStatus::is_served)).await;
    store.status()
}

/// A store in which each call first waits until the replicas have all earlier writes. A replica's
/// answer then contains the last change.
pub(crate) struct InStep<'s> {
    store: &'s Backend,
    primaries: Vec<MultiplexedConnection>,
}

impl<'s> InStep<'s> {
    pub(crate) async fn new(store: &'s Backend, pairs: &[Pair]) -> Self {
        let mut primaries = Vec::new();
        for [primary, _] in pairs {
            primaries.push(primary.connect().await);
        }
        Self { store, primaries }
    }
}

impl Store for InStep<'_> {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        for primary in &self.primaries {
            wait_for_replica(&mut primary.clone()).await;
        }
        self.store.apply(now, charges).await
    }
}
