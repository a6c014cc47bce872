//! Tables are used only if every server of a shard has the module.

use std::time::Duration;

use tollgate_conformance::PlainHash;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{
    Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Store, Subject, Timestamp,
};
use tollgate_redis::{
    Endpoint, Keys, LinkError, LinkLimits, RedisShard, RuntimeChoice, ShardSettings, StepRuntime,
};

use crate::kit::{Server, Version, module_file};
use crate::loaded::start;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The limit of each wait. No step takes so long, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time within which an expected error must occur, or an unexpected one must not occur.
const SHORT: Duration = Duration::from_millis(500);

fn shard(server: &Server, choice: RuntimeChoice) -> RedisShard {
    let endpoint: Endpoint = server.url().parse().unwrap();
    let mut settings = ShardSettings::new(endpoint);
    settings.link = LinkLimits {
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat_answer: PATIENCE,
        seek: PATIENCE,
        heartbeat: Duration::from_millis(50),
        ..LinkLimits::default()
    };
    RedisShard::open(&settings, Keys::new(PlainHash), choice).with_deadline(PATIENCE)
}

/// Waits until the shard reports that `replica` has no module.
async fn names(shard: &RedisShard, replica: &Server) {
    let port = replica.port().to_string();
    let is_named = || {
        shard.status().iter().any(|batcher| {
            matches!(&batcher.last_error, Some(LinkError::ReplicaWithoutModule { replica, .. })
                if replica.contains(&port))
        })
    };
    let named = async {
        while !is_named() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, named).await.expect("the replica is named");
}

async fn charge(shard: &RedisShard) -> u64 {
    let window = FixedWindow::new(1_000, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    let limit = Limit::new("core", Algorithm::FixedWindow(window)).unwrap();
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let charge = Charge { limit: &limit, subject: &Subject::default(), operation };
    shard.apply(NOW, &[charge]).await.unwrap()[0].used
}

async fn keys(server: &Server) -> u64 {
    redis::cmd("DBSIZE").query_async(&mut server.connect().await).await.unwrap()
}

/// While a replica has no module, its primary is not charged. If a replica without the module is
/// added later, charges stop too.
#[tokio::test]
async fn a_replica_without_the_module_is_found_before_its_primary_is_written_to() {
    let primary = start(Version::Redis82, &["--repl-diskless-sync-delay", "0"]).await;
    let replica =
        Server::start_version(Version::Redis82, &["--enable-module-command", "yes"]).await;
    replica.follow(&primary).await;

    let tables = shard(&primary, RuntimeChoice::Tables);
    names(&tables, &replica).await;
    assert!(tables.ready(SHORT).await.is_err());
    assert_eq!(keys(&primary).await, 0);

    // The layout with one key for each subject, which functions use too, needs no module on
    // replicas.
    let best = shard(&primary, RuntimeChoice::Best);
    best.ready(PATIENCE).await.unwrap();
    assert_eq!(best.runtime(), StepRuntime::Module);

    replica.execute(&["MODULE", "LOAD", &module_file()]).await;
    tables.ready(PATIENCE).await.unwrap();
    assert_eq!(tables.runtime(), StepRuntime::Tables);
    assert_eq!(charge(&tables).await, 1);

    // `tollgate doctor` reads this line.
    let mut connection = replica.connect().await;
    let info: String = redis::cmd("INFO").query_async(&mut connection).await.unwrap();
    assert!(info.contains("module:name=tollgate,"), "{info}");

    let late = Server::start_version(Version::Redis82, &[]).await;
    late.follow(&primary).await;
    names(&tables, &late).await;
    late.promote().await;
    tables.ready(PATIENCE).await.unwrap();
    assert_eq!(charge(&tables).await, 2);
}
