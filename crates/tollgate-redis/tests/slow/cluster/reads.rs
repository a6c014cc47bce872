//! Read-only calls to replicas.

use tollgate_redis::{CircuitState, ReadFrom};

use super::*;
use crate::cluster::site::{Client, Target, patient};
use crate::kit::{Cluster, PRIMARIES, Replicas, Version, on_every_version};

on_every_version! {
    replicas_answer_looks
}

async fn replicas_answer_looks(version: Version) {
    let cluster = Cluster::start(version, Replicas::OneEach).await;
    let mut settings = patient(&cluster.urls()[..1]);
    settings.reads = ReadFrom::Replicas;
    let client = Client::open(settings);
    client.store.ready(PATIENCE).await.unwrap();
    until(|| {
        let groups = client.store.status(NOW).groups;
        groups.iter().all(|group| {
            group.batchers.len() == 2 && group.batchers[1].circuit_state == CircuitState::Closed
        })
    })
    .await;
    for tenant in 0..20 {
        let target = Target { tenant, user: 0, limits: 2 };
        assert_eq!(client.take(target).await.unwrap()[0].used, 1);
        let arrives = async {
            while client.used(target).await == 0 {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, arrives).await.expect("the replica has what was taken");
    }
    let status = client.store.status(NOW);
    assert_eq!(status.groups.len(), PRIMARIES);
    for group in &status.groups {
        assert!(group.batchers[1].counts.jobs > 0, "{group:?}");
    }
    assert_eq!(status.redirects.moved, 0, "replicas were not asked to read");
}
