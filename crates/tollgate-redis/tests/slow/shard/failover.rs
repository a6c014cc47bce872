//! Primaries that are demoted, and replicas that do not follow.

use tollgate_redis::{LinkLimits, Topology};

use super::*;
use crate::kit::{QUICK, on_every_version};
use crate::shard::site::patient;

const QUOTA: u64 = 1_000;

on_every_version! {
    a_primary_that_turns_read_only_costs_no_call
    a_frozen_replica_costs_no_call
}

/// Starts a primary, a replica in sync with the primary, and a client of both servers. `seek` is
/// the pause before the client connects again.
async fn two(version: Version, way: Way, seek: Duration) -> (Server, Server, Arc<Client>) {
    let primary = way.start(version, &QUICK).await;
    let replica = way.start(version, &QUICK).await;
    replica.follow(&primary).await;
    let mut settings = patient(primary.url().parse().unwrap());
    settings.topology = Topology::Static {
        primary: primary.url().parse().unwrap(),
        replicas: vec![replica.url().parse().unwrap()],
    };
    settings.link = LinkLimits { seek, proven_after: Duration::ZERO, ..settings.link };
    let client = Client::new(&settings, way, QUOTA).await;
    (primary, replica, client)
}

async fn a_primary_that_turns_read_only_costs_no_call(version: Version) {
    for way in Way::of(version) {
        let (old, new, client) = two(version, *way, PATIENCE).await;
        for used in 1..=50 {
            assert_eq!(client.take(0, 1).await.unwrap().used, used, "{way:?}");
        }
        old.is_followed().await;
        new.promote().await;
        old.begin_to_follow(&new).await;
        for used in 51..=100 {
            assert_eq!(client.take(0, 1).await.unwrap().used, used, "{way:?}");
        }
        client.is_on(&new).await;
        client.assert_sound();
        new.assert_every_key_ends().await;
    }
}

async fn a_frozen_replica_costs_no_call(version: Version) {
    for way in Way::of(version) {
        let (mut primary, replica, client) = two(version, *way, SHORT).await;
        for used in 1..=50 {
            assert_eq!(client.take(0, 1).await.unwrap().used, used, "{way:?}");
        }
        primary.is_followed().await;
        replica.freeze();
        for used in 51..=100 {
            assert_eq!(client.take(0, 1).await.unwrap().used, used, "{way:?}");
        }
        primary.kill();
        until(|| client.circuit_state() == CircuitState::Open).await;
        assert_eq!(client.take(0, 1).await, Err(BatcherError::Unavailable), "{way:?}");

        replica.thaw();
        replica.promote().await;
        client.store.ready(PATIENCE).await.unwrap();
        client.is_on(&replica).await;
        // Only writes that the primary had not replicated when it died are lost.
        let used = client.take(0, 1).await.unwrap().used;
        assert!((51..=101).contains(&used), "{way:?}: {used}");
        client.assert_sound_but_for(50);
    }
}
