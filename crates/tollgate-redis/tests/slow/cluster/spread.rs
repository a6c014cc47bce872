//! Many subjects, spread over all nodes.

use super::*;
use crate::cluster::site::{Client, Target, counts_are_exact_during};
use crate::kit::{Cluster, PRIMARIES, Replicas, Version};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_many_slots_travel_together_and_count_exactly() {
    let cluster = Cluster::start(Version::default(), Replicas::None).await;
    let client = Client::connect(&cluster).await;
    let target = |tenant| Target { tenant, user: 0, limits: 2 };
    let targets: Vec<_> = (0..30).map(target).collect();
    let slots: std::collections::BTreeSet<_> =
        targets.iter().map(|target| client.slot(target.tenant)).collect();
    assert!(slots.len() > 2 * PRIMARIES, "{slots:?}");
    counts_are_exact_during(&client, &targets, client.answers(500)).await;
    let status = client.store.status(NOW);
    assert_eq!((status.groups.len(), status.unowned), (PRIMARIES, 0));
    assert_eq!(status.redirects, tollgate_redis::Redirects::default());
    for (group, place) in status.groups.iter().zip(0..) {
        assert_eq!(group.slots as usize, cluster.share(place).len());
        assert_eq!(group.batchers[0].address, Some(cluster.nodes[place].url()));
        assert!(group.batchers[0].counts.jobs > 0);
        cluster.nodes[place].assert_every_key_ends().await;
    }
    let counts = status.groups.iter().map(|group| group.batchers[0].counts);
    let (calls, jobs) = counts.fold((0, 0), |(calls, jobs), it| (calls + it.calls, jobs + it.jobs));
    assert!(calls < jobs, "{calls} calls carried {jobs} jobs: nothing travelled together");
}

#[tokio::test]
async fn charges_of_several_slots_are_refused_before_they_are_sent() {
    use tollgate_conformance::PlainHash;
    use tollgate_core::algo::{Anchor, FixedWindow};
    use tollgate_core::{Algorithm, Charge, Cost, Limit, Millis, Operation, Subject, Value};
    let cluster = Cluster::start(Version::default(), Replicas::None).await;
    let client = Client::connect(&cluster).await;
    let window = FixedWindow::new(9, Millis::new(1_000), Anchor::FirstRequest).unwrap();
    let limit = Limit::new("core", Algorithm::FixedWindow(window)).unwrap();
    let [one, other] = [b"1", b"2"]
        .map(|tenant| Subject::new([("tenant", Value::Clear(&tenant[..]))], &PlainHash));
    let operation = Operation::Peek { cost: Cost::ONE };
    let charges = [&one, &other].map(|subject| Charge { limit: &limit, subject, operation });
    assert_ne!(client.store.partition(&one), client.store.partition(&other));
    let error = client.store.apply_within(NOW, &charges, PATIENCE).await.unwrap_err();
    assert_eq!(error, tollgate_redis::BatcherError::Refused("CROSSSLOT".into()));
}
