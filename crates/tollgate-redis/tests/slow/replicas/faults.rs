//! Replicas that fail.

use std::time::Duration;

use tollgate_conformance::PlainHash;
use tollgate_core::{Charge, ChargeId, Cost, Operation, Store, Subject, Value};
use tollgate_redis::{CircuitState, RuntimeChoice};

use crate::kit::{Version, on_every_version};
use crate::replicas::pair::{Client, Pair};
use crate::replicas::{NOW, until};

/// The deadline of calls. The second half of the deadline is reserved for the primary.
const DEADLINE: Duration = Duration::from_secs(4);

on_every_version! {
    a_frozen_replica_is_waited_for_once
    a_replica_that_dies_is_missed_by_nobody
}

async fn a_frozen_replica_is_waited_for_once(version: Version) {
    let pair = Pair::start(version).await;
    let mut client = Client::connect(&pair.settings(), RuntimeChoice::Best).await;
    client.store = client.store.with_deadline(DEADLINE);
    client.take(NOW, 3).await.unwrap();
    pair.primary.is_followed().await;

    pair.replica.freeze();
    for _ in 0..50 {
        // This call uses the trait `Store`, with the store's own deadline.
        let subject = Subject::default();
        let charge = Charge {
            limit: client.limit(),
            subject: &subject,
            operation: Operation::Peek { cost: Cost::ONE },
        };
        assert_eq!(client.store.apply(NOW, &[charge]).await.unwrap()[0].used, 3);
    }
    let counts = client.store.status()[1].counts;
    assert_eq!(counts.timed_out, 1, "one call waited, the others were answered at once");

    pair.replica.thaw();
    client.reads_from(1).await;
    let before = client.store.status()[1].counts.jobs;
    assert_eq!(client.used().await, 3);
    assert_eq!(client.store.status()[1].counts.jobs, before + 1, "the replica is asked again");
}

async fn a_replica_that_dies_is_missed_by_nobody(version: Version) {
    let mut pair = Pair::start(version).await;
    let client = Client::connect(&pair.settings(), RuntimeChoice::Best).await;
    client.take(NOW, 3).await.unwrap();
    pair.primary.is_followed().await;
    pair.replica.kill();
    for _ in 0..200 {
        assert_eq!(client.used().await, 3);
    }
    until(|| client.circuit_state(1) == CircuitState::Open).await;
    pair.replica.start_again(&[]);
    // The server has no data and follows no primary, so it receives no calls.
    client.leaves_the_replica("is not a replica of").await;
    assert_eq!(client.used().await, 3);
    pair.replica.follow(&pair.primary).await;
    client.reads_from(1).await;
    assert_eq!(client.used().await, 3);
}

#[tokio::test]
async fn a_primary_that_is_down_does_not_end_reading() {
    let mut pair = Pair::start(Version::default()).await;
    let mut settings = pair.settings();
    // Without a heartbeat, the replica stays in service.
    settings.link.heartbeat = crate::replicas::PATIENCE;
    let client = Client::connect(&settings, RuntimeChoice::Best).await;
    client.take(NOW, 3).await.unwrap();
    pair.primary.is_followed().await;
    pair.primary.kill();
    until(|| client.circuit_state(0) == CircuitState::Open).await;
    assert_eq!(client.used().await, 3);
    assert!(client.take(NOW, 1).await.is_err(), "only a primary admits");
}

#[tokio::test]
async fn a_step_that_is_lost_comes_back_by_the_primary() {
    let pair = Pair::start(Version::default()).await;
    let client = Client::connect(&pair.settings(), RuntimeChoice::Best).await;
    client.take(NOW, 3).await.unwrap();
    for _ in 0..10 {
        pair.primary.execute(&["FUNCTION", "FLUSH", "SYNC"]).await;
        pair.primary.is_followed().await;
        pair.replica.forget_commands().await;
        while !pair.replica.commands().await.contains_key("mget") {
            assert_eq!(client.used().await, 3);
        }
    }
    let client = Client::connect(&pair.settings(), RuntimeChoice::Script).await;
    for _ in 0..10 {
        pair.replica.execute(&["SCRIPT", "FLUSH", "SYNC"]).await;
        let before = client.store.status()[0].counts.jobs;
        assert_eq!(client.used().await, 3);
        assert_eq!(client.store.status()[0].counts.jobs, before, "the replica was given it again");
    }
}

#[tokio::test]
async fn a_look_beside_a_take_is_the_primarys() {
    let pair = Pair::start(Version::default()).await;
    let client = Client::connect(&pair.settings(), RuntimeChoice::Best).await;
    let other = Subject::new([("number", Value::Clear(b"2"))], &PlainHash);
    let (taken, seen) = (Subject::default(), other);
    let take = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let charges = [(&taken, take), (&seen, Operation::Peek { cost: Cost::ONE })]
        .map(|(subject, operation)| Charge { limit: client.limit(), subject, operation });
    let before = client.store.status()[1].counts.jobs;
    let readings = client.store.apply(NOW, &charges).await.unwrap();
    assert_eq!((readings[0].used, readings[1].used), (1, 0));
    assert_eq!(client.store.status()[1].counts.jobs, before);
}
