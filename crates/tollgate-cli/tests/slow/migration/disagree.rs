//! Two nodes that disagree on the percentage for a short time.

use std::time::Duration;

use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::{Algorithm, Limit, Millis};
use tollgate_conformance::{Figure, assert_held};
use tollgate_stores::rollout::max_over_admission;

use crate::kit::Server as Redis;
use crate::memcached::Server as Memcached;
use crate::migration::site::{Site, charge, in_memcached, in_redis, node, rollout, status, turn};
use crate::support::client::Client;
use crate::support::node::Node;

const QUOTA: u64 = 40;
const TOKENS: usize = 12;
/// The number of charges of each token at each node before the nodes disagree, and while they do.
const BEFORE: usize = 8;
const APART: usize = 5;

/// Charges each token `times` times at each node, alternating between the nodes, and adds up the
/// admitted units.
fn charge_at(nodes: [&Node; 2], times: usize, admitted: &mut [u64; TOKENS]) {
    let mut clients = nodes.map(|node| Client::connect(node.listener("http")).unwrap());
    for _ in 0..times {
        for (token, admitted) in admitted.iter_mut().enumerate() {
            for client in &mut clients {
                *admitted += u64::from(charge(client, &format!("t{token}")).is_admitted);
            }
        }
    }
}

#[tokio::test]
async fn what_they_admit_beyond_the_limit_is_within_the_bound() {
    let (old, new) = (Memcached::start(), Redis::start().await);
    let site = Site::new();
    let store = rollout(0, &in_memcached(&old), &in_redis(&new));
    let path = site.policy("policy.yaml", QUOTA, &store);
    let (ahead, behind) = (node(&path), node(&path));
    let nodes = [&ahead, &behind];
    let mut admitted = [0; TOKENS];
    charge_at(nodes, BEFORE, &mut admitted);

    turn(&ahead, 100);
    let before = admitted;
    charge_at(nodes, APART, &mut admitted);
    let apart = admitted.iter().zip(&before).map(|(now, before)| now - before).max().unwrap();
    turn(&behind, 100);
    // The charges exceed the rest of the quota.
    charge_at(nodes, QUOTA as usize, &mut admitted);

    let window = FixedWindow::new(QUOTA, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    let limit = Limit::new("core", Algorithm::FixedWindow(window)).unwrap();
    // The most units that are admitted in one second while the nodes disagree.
    let bound = max_over_admission(&limit, apart, Duration::from_secs(1));
    let beyond = admitted.map(|units| units.saturating_sub(QUOTA));
    assert_held(&[
        Figure::fault_seen(
            "units above the limit of each client",
            beyond.into_iter().min().unwrap(),
        ),
        Figure::at_most("units above a client's limit", beyond.into_iter().max().unwrap(), bound),
    ]);
    for node in nodes {
        assert_eq!(status(node)["counts"]["transfer_failures"], 0);
    }
}
