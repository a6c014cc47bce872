//! The suite that every store passes, over a Redis Cluster.

use std::time::Duration;

use tollgate_backend::Slots;
use tollgate_conformance::check;
use tollgate_redis::{Choice, ClusterSettings, Endpoint, Keys, LinkLimits, RedisCluster, Tag};

use crate::fleet::key;
use crate::kit::{Cluster, Replicas, Version};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn charges_that_span_slots_are_a_store() {
    let cluster = Cluster::start(Version::default(), Replicas::None).await;
    let seed: Endpoint = cluster.nodes[0].url().parse().unwrap();
    let mut settings = ClusterSettings::new([seed]);
    // What the suite's subjects differ in: so the charges of one call live in several slots.
    settings.tag = Tag::Dimension("subject".into());
    settings.link = LinkLimits {
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat_answer: PATIENCE,
        seek: PATIENCE,
        ..LinkLimits::default()
    };
    let opened = RedisCluster::open(settings, Keys::new(key()), Choice::Best);
    let opened = opened.with_deadline(PATIENCE);
    opened.ready(PATIENCE).await.unwrap();
    let store = Slots::store(opened);
    check(&store, "cluster").await;
    assert_eq!(store.stranded(), 0);
    let status = store.homes().cluster().status(tollgate::core::Timestamp::EPOCH);
    let asked = status.groups.iter().filter(|group| group.lanes[0].counts.jobs > 0).count();
    assert!(asked > 1, "nothing lived on several nodes: {status:?}");
    for node in &cluster.nodes {
        if !node.keys().await.is_empty() {
            node.assert_every_key_ends().await;
        }
    }
}
