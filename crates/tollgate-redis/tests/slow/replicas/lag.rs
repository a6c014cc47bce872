//! Replicas that are reachable but outdated.

use tollgate_conformance::{Figure, assert_held};
use tollgate_core::{Admission, StoredState, Timestamp};
use tollgate_redis::{CircuitState, RuntimeChoice};

use crate::kit::{Passage, Proxy, QUICK, Server, Version, on_every_version};
use crate::replicas::pair::{Client, Pair};
use crate::replicas::{NOW, PATIENCE, WINDOW, until};

on_every_version! {
    a_replica_that_falls_behind_is_not_read_from
    a_window_that_is_over_is_over_on_a_replica_too
}

/// Starts a primary and a replica with a proxy between them, which can delay the replication.
async fn behind_a_proxy(version: Version) -> (Pair, Proxy) {
    let primary = Server::start_version(version, &QUICK).await;
    let replica = Server::start_version(version, &QUICK).await;
    let network = Proxy::start(primary.port()).await;
    let port = network.url().rsplit(':').next().unwrap().to_owned();
    replica.execute(&["REPLICAOF", "127.0.0.1", &port]).await;
    primary.is_followed().await;
    (Pair { primary, replica }, network)
}

/// Returns the replication offset of a server in bytes.
async fn offset(server: &Server) -> u64 {
    let info = server.info("replication").await;
    let offset = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
    offset.unwrap().trim().parse().unwrap()
}

async fn a_replica_that_falls_behind_is_not_read_from(version: Version) {
    let (pair, network) = behind_a_proxy(version).await;
    let client = Client::connect(&pair.settings(), RuntimeChoice::Best).await;
    client.take(NOW, 3).await.unwrap();
    pair.primary.is_followed().await;
    network.replies(Passage::Held);
    client.take(NOW, 2).await.unwrap();
    // The replica's connection to the primary is open, and the replica reports the open connection.
    client.leaves_the_replica("it lacks").await;
    let info = client.used().await;
    let lacks = offset(&pair.primary).await.saturating_sub(offset(&pair.replica).await);
    network.replies(Passage::Open);
    client.reads_from(1).await;
    assert_held(&[
        Figure::fault_seen("bytes that the replica lacked", lacks),
        Figure::at_most("units that a read did not report", 5 - info, 0),
        Figure::at_most("the same, when it was in step again", 5 - client.used().await, 0),
    ]);
}

async fn a_window_that_is_over_is_over_on_a_replica_too(version: Version) {
    let (pair, network) = behind_a_proxy(version).await;
    let mut settings = pair.settings();
    // Without a heartbeat, the replica's lag is not detected.
    settings.link.heartbeat = PATIENCE;
    let client = Client::connect(&settings, RuntimeChoice::Best).await;
    let opened = client.take(NOW, 1_000).await.unwrap();
    pair.primary.is_followed().await;
    network.replies(Passage::Held);
    let later = Timestamp::from_millis(NOW.as_millis() + WINDOW);
    assert_eq!(client.take(later, 5).await.unwrap().used, 5);

    let before = Timestamp::from_millis(later.as_millis() - 1);
    let old = client.peek(before).await.unwrap();
    assert_eq!(old.admission, Admission::At(opened.full_reset_at), "what the replica has");
    let new = client.peek(later).await.unwrap();
    assert_eq!((new.admission, new.found), (Admission::Now, StoredState::Missing));
    assert_held(&[
        Figure::fault_seen("units that the replica has of the window that is over", old.used),
        Figure::at_most("units of it that a look told of", new.used, 0),
    ]);
    assert_eq!(new.full_reset_at.as_millis(), later.as_millis() + WINDOW);
    assert_eq!(client.circuit_state(1), CircuitState::Closed);
}

#[tokio::test]
async fn a_replica_that_follows_another_is_not_read_from() {
    let pair = Pair::start(Version::default()).await;
    let other = Server::start_with(&QUICK).await;
    let client = Client::connect(&pair.settings(), RuntimeChoice::Best).await;
    client.take(NOW, 3).await.unwrap();
    pair.primary.is_followed().await;
    // The other primary writes more than the shard's primary has written, so the offset alone does
    // not show the difference.
    for _ in 0..200 {
        other.execute(&["SET", "key", "value"]).await;
    }
    pair.replica.follow(&other).await;
    client.leaves_the_replica("is not a replica of").await;
    assert_eq!(client.used().await, 3);
    pair.replica.follow(&pair.primary).await;
    client.reads_from(1).await;
    assert_eq!(client.used().await, 3);
}

#[tokio::test]
async fn a_replica_that_was_promoted_takes_over_while_the_old_primary_still_answers() {
    let pair = Pair::start(Version::default()).await;
    let client = Client::connect(&pair.settings(), RuntimeChoice::Best).await;
    client.take(NOW, 3).await.unwrap();
    pair.primary.is_followed().await;
    pair.replica.promote().await;
    until(|| client.store.status()[0].address == Some(pair.replica.url())).await;
    client.take(NOW, 1).await.unwrap();
    assert_eq!(client.used().await, 4);
    let old = pair.primary.info("replication").await.contains("role:master");
    pair.primary.execute(&["FLUSHALL"]).await;
    assert_held(&[
        Figure::fault_seen("old primaries that call themselves so", old.into()),
        Figure::at_most("units lost with the old one", 4 - client.used().await, 0),
        Figure::at_most("losses reported", client.store.windows_lost().0, 0),
    ]);
}

#[tokio::test]
async fn a_replica_that_may_not_report_its_status_is_not_read_from() {
    let pair = Pair::start(Version::default()).await;
    let client = Client::connect(&pair.settings(), RuntimeChoice::Best).await;
    client.take(NOW, 3).await.unwrap();
    pair.replica.execute(&["ACL", "SETUSER", "default", "-info"]).await;
    client.leaves_the_replica("INFO").await;
    assert_eq!(client.used().await, 3);
}
