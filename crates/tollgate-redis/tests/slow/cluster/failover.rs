//! Primaries that are replaced, on request or because the primaries died.

use super::*;
use crate::cluster::site::{Client, Target, counts_are_exact_during};
use crate::kit::{Cluster, PRIMARIES, Replicas, Version, on_every_version};

on_every_version! {
    a_failover_on_request_costs_no_call
    a_primary_that_dies_is_succeeded
}

fn targets() -> Vec<Target> {
    (0..12).map(|tenant| Target { tenant, user: 0, limits: 1 }).collect()
}

async fn a_failover_on_request_costs_no_call(version: Version) {
    let cluster = Cluster::start(version, Replicas::OneEach).await;
    let client = Client::connect(&cluster).await;
    let failover = async {
        let successor = &cluster.nodes[PRIMARIES];
        successor.execute(&["CLUSTER", "FAILOVER"]).await;
        successor.is_primary().await;
        until(|| client.store.status(NOW).groups[0].batchers[0].address == Some(successor.url()))
            .await;
        client.answers(100).await;
    };
    counts_are_exact_during(&client, &targets(), failover).await;
    assert!(client.store.status(NOW).redirects.moved > 0, "it found the successor by itself");
}

async fn a_primary_that_dies_is_succeeded(version: Version) {
    let mut cluster = Cluster::start(version, Replicas::OneEach).await;
    let client = Client::connect(&cluster).await;
    let dying = (0..).find(|tenant| cluster.place_of(client.slot(*tenant)) == 0).unwrap();
    let target = Target { tenant: dying, user: 0, limits: 2 };
    for used in 1..=50 {
        assert_eq!(client.take(target).await.unwrap()[0].used, used);
    }
    let mut connection = cluster.nodes[0].connect().await;
    is_replicated(&mut connection).await;
    cluster.kill(0).await;
    let successor = &cluster.nodes[PRIMARIES];
    successor.is_primary().await;
    successor.wait_for_field("cluster_state", "ok").await;
    until(|| client.store.status(NOW).groups[0].batchers[0].address == Some(successor.url())).await;
    // Until a replica had taken over, the node that answered instead of the dead node reported that
    // the cluster was down.
    let recovers = async {
        while client.take(target).await.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, recovers).await.expect("the successor answers");
    assert_eq!(client.used(target).await, 51, "the successor has all that was replicated");
    let dead = cluster.nodes[0].url();
    until(|| {
        let status = client.store.status(NOW);
        status.unowned == 0
            && status.groups.iter().all(|group| group.batchers[0].address.as_ref() != Some(&dead))
    })
    .await;
}

/// Waits until the replica of the connected server has all writes of the server.
async fn is_replicated(connection: &mut redis::aio::MultiplexedConnection) {
    let (mut sent, mut received) = (u64::MAX, 0);
    while sent != received {
        let info: String =
            redis::cmd("INFO").arg("replication").query_async(connection).await.unwrap();
        let number = |from: &str, to: char| {
            let (_, rest) = info.split_once(from)?;
            rest.split(to).next()?.trim().parse().ok()
        };
        sent = number("master_repl_offset:", '\n').unwrap();
        received = number(",offset=", ',').unwrap_or(0);
        tokio::time::sleep(PAUSE).await;
    }
}
