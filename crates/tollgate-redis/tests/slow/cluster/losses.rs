//! Counters that a cluster node lost.

use std::time::Duration;

use tollgate_conformance::{Figure, assert_held};
use tollgate_redis::DataLoss;

use super::*;
use crate::cluster::site::{Client, patient};
use crate::kit::{Cluster, Replicas, Version};

/// The loss is detected even though the slot of the generation key has moved to another node.
#[tokio::test]
async fn an_emptied_node_is_reported_and_no_other() {
    let cluster = Cluster::start(Version::default(), Replicas::None).await;
    let mut settings = patient(&cluster.urls()[..1]);
    settings.refresh = Duration::from_millis(100);
    settings.link.heartbeat = Duration::from_millis(50);
    let client = Client::open(settings);
    client.store.ready(PATIENCE).await.unwrap();
    let first = cluster.share(1).start;
    cluster.begin_to_move(first, 1, 2).await;
    while cluster.move_key(first, 1, 2).await {}
    cluster.end_move(first, 1, 2).await;
    until(|| client.store.status(NOW).groups.iter().map(|group| group.slots).max() == Some(5_463))
        .await;
    let lost = || client.store.status(NOW).groups.into_iter().map(|group| group.windows_lost);
    // A loss can be detected only after the node's replication epoch was read.
    let emptied = async {
        while lost().sum::<u64>() == 0 {
            cluster.nodes[1].execute(&["FLUSHALL"]).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, emptied).await.expect("it is noticed");
    let of_the_emptied = client
        .store
        .status(NOW)
        .groups
        .into_iter()
        .find(|group| group.batchers[0].address.as_deref() == Some(&*cluster.nodes[1].url()));
    assert_eq!(of_the_emptied.unwrap().last_loss, Some(DataLoss::Flushed));
    assert_held(&[
        Figure::fault_seen("losses reported", lost().sum()),
        Figure::at_most("nodes told of", lost().filter(|lost| *lost > 0).count() as u64, 1),
    ]);
}
