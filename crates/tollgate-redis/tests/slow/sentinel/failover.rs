//! Primaries that die, and old primaries that return too late.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tollgate_conformance::{Figure, assert_held};
use tollgate_redis::BatcherError;

use crate::kit::{Server, Version};
use crate::sentinel::watched::{Client, Watched, Way};
use crate::sentinel::{PATIENCE, until};

macro_rules! on_two_versions {
    ($($test:ident)*) => { $(
        mod $test {
            use crate::kit::Version;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn redis_of_the_system() {
                super::$test(Version::System).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn valkey_9_1() {
                super::$test(Version::Valkey91).await;
            }
        }
    )* };
}

on_two_versions! {
    a_killed_primary_is_replaced_by_the_one_that_is_announced
    a_frozen_primary_that_comes_back_is_charged_no_more
}

/// Charges until a server other than the first server answers. Returns the index of that server and
/// the number of calls that failed until then.
async fn takes_over(watched: &Watched, client: &Client) -> (usize, u64) {
    let (started, mut in_vain) = (Instant::now(), 0);
    loop {
        assert!(started.elapsed() < PATIENCE, "no server took over: {in_vain} calls failed");
        match client.take().await {
            Ok(_) => {
                if let Some(server @ 1..) = watched.primary_of(client) {
                    return (server, in_vain);
                }
            }
            Err(BatcherError::Lost | BatcherError::Unavailable | BatcherError::TimedOut) => {
                in_vain += 1;
                sleep(Duration::from_millis(5)).await;
            }
            Err(other) => panic!("a failover caused {other:?}"),
        }
    }
}

/// Returns the role that a server reports.
async fn role(server: &Server) -> String {
    let reply = redis::cmd("ROLE").query_async(&mut server.connect().await).await;
    let (role, _, _): (String, redis::Value, redis::Value) = reply.unwrap();
    role
}

async fn a_killed_primary_is_replaced_by_the_one_that_is_announced(version: Version) {
    let mut watched = Watched::start(version, Way::Open).await;
    let client = Client::connect(&watched.settings()).await;
    watched.is_known_to(&client).await;
    for used in 1..=50 {
        assert_eq!(client.take().await.unwrap(), used);
    }
    watched.servers[0].is_followed().await;
    watched.servers[0].kill();
    let (primary, in_vain) = takes_over(&watched, &client).await;
    let used = client.take().await.unwrap();
    assert_held(&[
        Figure::fault_seen("calls without a primary", in_vain),
        // Counted units: the charges before the failover, the charge that the new primary answered,
        // and the next charge.
        Figure::at_most("units lost", 52_u64.saturating_sub(used), 0),
    ]);
    watched.servers[primary].assert_every_key_ends().await;
}

async fn a_frozen_primary_that_comes_back_is_charged_no_more(version: Version) {
    let watched = Watched::start(version, Way::Open).await;
    let settings = watched.settings();
    let client = Client::connect(&settings).await;
    watched.is_known_to(&client).await;
    for used in 1..=50 {
        assert_eq!(client.take().await.unwrap(), used);
    }
    watched.servers[0].is_followed().await;
    let held = client.held_by(&watched.servers[0]).await;
    watched.servers[0].freeze();
    takes_over(&watched, &client).await;
    watched.servers[0].thaw();

    assert_eq!(role(&watched.servers[0]).await, "master", "it does not know better yet");
    let started = Instant::now();
    let mut used = 51;
    while started.elapsed() < settings.link.gray_failure_max() * 2 {
        match client.take().await {
            Ok(now) => {
                assert!(now > used, "it is counted by the new primary: {now} after {used}");
                used = now;
            }
            // A busy machine may delay an answer, but the old primary receives no calls.
            Err(BatcherError::Lost | BatcherError::Unavailable | BatcherError::TimedOut) => {
                sleep(Duration::from_millis(5)).await;
            }
            Err(other) => panic!("a primary that came back caused {other:?}"),
        }
    }
    assert_eq!(client.held_by(&watched.servers[0]).await, held, "the old one was charged");
    assert_eq!(client.store.windows_lost(), (0, None));
    // A node that starts now reaches both servers, and the sentinels name the primary.
    let other = Client::connect(&settings).await;
    until(|| watched.primary_of(&other).is_some_and(|server| server > 0)).await;
    assert!(used > 51, "the new primary was asked");
}
