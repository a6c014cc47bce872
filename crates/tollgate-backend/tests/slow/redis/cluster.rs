//! Runs the conformance suite of all stores on a Redis Cluster.

use std::time::Duration;

use tollgate_backend::{Backend, Counts, RedisServers};
use tollgate_conformance::check;
use tollgate_redis::{
    ClusterSettings, Endpoint, Keys, LinkLimits, RedisCluster, RuntimeChoice, Tag,
};
use tollgate_stores::{Atomic, FailoverReplay};

use crate::kit::{Cluster, Replicas, Server, Version};
use crate::redis::fleet::{PATIENT, key, open, routed_by_subject};
use crate::redis::pairs::served;

/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn charges_that_span_slots_are_a_store() {
    let cluster = Cluster::start(Version::default(), Replicas::None).await;
    let seed: Endpoint = cluster.nodes[0].url().parse().unwrap();
    let mut settings = ClusterSettings::new([seed]);
    // The suite's subjects differ in this pair, so the charges of one call are in several slots.
    settings.tag = Tag::Dimension("subject".into());
    settings.link = LinkLimits {
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat_answer: PATIENCE,
        seek: PATIENCE,
        ..LinkLimits::default()
    };
    let opened = RedisCluster::open(settings, Keys::new(key()), RuntimeChoice::Best);
    let opened = opened.with_deadline(PATIENCE);
    opened.ready(PATIENCE).await.unwrap();
    let store = Atomic::new(FailoverReplay::new(RedisServers::Cluster(Box::new(opened))));
    check(&store, "cluster").await;
    assert_eq!(store.unrefunded(), 0);
    let RedisServers::Cluster(slots) = store.partitions().store() else { panic!("{store:?}") };
    let status = slots.status(tollgate::model::Timestamp::EPOCH);
    let used = status.groups.iter().filter(|group| group.batchers[0].counts.jobs > 0).count();
    assert!(used > 1, "nothing lived on several nodes: {status:?}");
    for node in &cluster.nodes {
        if !node.keys().await.is_empty() {
            node.assert_every_key_ends().await;
        }
    }
}

/// The subjects of one call may be in a slot of the cluster and on a shard with a single primary.
#[tokio::test]
async fn a_cluster_is_one_shard_of_two() {
    let cluster = Cluster::start(Version::default(), Replicas::None).await;
    let single = Server::start().await;
    let store = format!(
        "shards: {{ alone: {{ primary: \"{}\" }}, cluster: {{ nodes: [\"{}\"] }} }}, {PATIENT}, \
         deny_cache: false",
        single.url(),
        cluster.nodes[0].url(),
    );
    let store = open(&routed_by_subject(&store));
    served(&store).await;
    check(&store, "a cluster beside a primary").await;
    let Backend::Redis(fleet) = &store else { panic!("{store:?}") };
    let counts = fleet.counts();
    assert_eq!(counts, Counts { discarded: counts.discarded, ..Counts::default() });
    for shard in store.status() {
        let jobs: u64 = shard.batchers.iter().map(|batcher| batcher.counts.jobs).sum();
        assert!(jobs > 0, "nobody lives on {}", shard.name);
    }
    for server in cluster.nodes.iter().chain([&single]) {
        if !server.keys().await.is_empty() {
            server.assert_every_key_ends().await;
        }
    }
}
