//! Runs the conformance suite of all stores on a cluster. All charges of one call share a slot.

use tollgate_conformance::{PlainHash, check};
use tollgate_core::{Charge, Readings, Store, StoreError};
use tollgate_redis::{Keys, RedisCluster, RuntimeChoice, StepRuntime, Tag};

use super::*;
use crate::cluster::site::patient;
use crate::kit::{Cluster, Replicas, Version, on_every_version};

on_every_version! {
    the_suite_passes
}

/// A cluster store that sends each call to one partition.
struct OneHome(RedisCluster);

impl Store for OneHome {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let Some(first) = charges.first() else { return Ok(Readings::new()) };
        self.0.apply_at(self.0.partition(first.subject), now, charges).await
    }
}

async fn the_suite_passes(version: Version) {
    let cluster = Cluster::start(version, Replicas::None).await;
    let best = if version.has_functions() { StepRuntime::Function } else { StepRuntime::Script };
    for (choice, runs) in
        [(RuntimeChoice::Best, best), (RuntimeChoice::Script, StepRuntime::Script)]
    {
        let mut settings = patient(&cluster.urls()[1..]);
        settings.tag = Tag::First;
        let keys = Keys::new(PlainHash);
        let store = RedisCluster::open(settings, keys, choice).with_deadline(PATIENCE);
        store.ready(PATIENCE).await.unwrap();
        let store = OneHome(store);
        check(&store, &format!("{choice:?}")).await;
        let groups = store.0.status(NOW).groups;
        assert!(groups.iter().all(|group| group.runs == runs), "{groups:?}");
        for node in &cluster.nodes {
            if !node.keys().await.is_empty() {
                node.assert_every_key_ends().await;
            }
        }
    }
}
