//! A cluster that does not serve requests.

use tollgate_conformance::{Figure, assert_held};
use tollgate_redis::{BatcherError, CircuitState, Redirect};

use super::*;
use crate::cluster::site::{Client, Target, patient};
use crate::kit::{Cluster, Replicas, Server, Version, free_port};

fn on_node(cluster: &Cluster, client: &Client, place: usize) -> Target {
    let lives_there = |tenant: &u64| cluster.place_of(client.slot(*tenant)) == place;
    let tenant = (0..).find(lives_there).unwrap();
    Target { tenant, user: 0, limits: 1 }
}

#[tokio::test]
async fn a_cluster_that_lost_slots_says_so_at_once_and_comes_back() {
    let mut cluster = Cluster::start(Version::default(), Replicas::None).await;
    let client = Client::connect(&cluster).await;
    let [dead, alive] = [0, 1].map(|place| on_node(&cluster, &client, place));
    assert_eq!(client.take(alive).await.unwrap()[0].used, 1);
    assert_eq!(client.take(dead).await.unwrap()[0].used, 1);
    cluster.kill(0).await;
    cluster.nodes[1].wait_for_field("cluster_state", "fail").await;
    // By default, the cluster also stops serving the remaining slots.
    assert_eq!(client.take(alive).await, Err(BatcherError::Redirected(Redirect::Down)));
    let down = client.store.status(NOW).redirects.down;
    until(|| client.store.status(NOW).groups[0].batchers[0].circuit_state == CircuitState::Open)
        .await;
    assert_eq!(client.take(dead).await, Err(BatcherError::Unavailable));

    cluster.nodes[1].execute(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]).await;
    cluster.nodes[1].wait_for_field("cluster_state", "ok").await;
    let used = client.take(alive).await.unwrap()[0].used;
    assert_held(&[
        Figure::fault_seen("calls that the cluster did not serve", down),
        Figure::at_most("units lost or counted in vain of slots that stayed", used.abs_diff(2), 0),
    ]);
}

#[tokio::test]
async fn nobody_waits_for_a_cluster_that_is_not_there() {
    let nowhere = [format!("redis://127.0.0.1:{}", free_port())];
    let client = Client::open(patient(&nowhere));
    let error = client.store.ready(Duration::from_millis(200)).await.unwrap_err();
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    let target = Target { tenant: 1, user: 0, limits: 1 };
    assert_eq!(client.take(target).await, Err(BatcherError::Unavailable));
    assert_eq!(client.store.status(NOW).unowned, 16_384);
}

#[tokio::test]
async fn a_server_by_itself_is_no_cluster() {
    let server = Server::start().await;
    let client = Client::open(patient(&[server.url()]));
    let error = client.store.ready(Duration::from_millis(500)).await.unwrap_err();
    assert!(error.to_string().contains("is no node of a cluster"), "{error}");
}
