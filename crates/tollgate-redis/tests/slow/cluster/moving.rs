//! The keys of a slot are moved one after the other while they are charged.

use tollgate_conformance::{Figure, assert_held};

use super::*;
use crate::cluster::site::{Client, Target, counts_are_exact_during};
use crate::kit::{Cluster, PRIMARIES, Replicas, Version, on_every_version};

/// The number of users with a window before the slot moves, and also of users that get a window
/// during the move.
const USERS: u64 = 20;

on_every_version! {
    a_slot_that_moves_under_load_counts_exactly
}

async fn a_slot_that_moves_under_load_counts_exactly(version: Version) {
    let cluster = Cluster::start(version, Replicas::None).await;
    let client = Client::connect(&cluster).await;
    for limits in [1, 2] {
        let tenant = limits as u64;
        let slot = client.slot(tenant);
        let from = cluster.place_of(slot);
        let to = (from + 1) % PRIMARIES;
        let users: Vec<_> = (0..USERS).map(|user| Target { tenant, user, limits }).collect();
        let (known, all) = (&users[..users.len() / 2], &users[..]);
        for user in known {
            // The callers' counts continue from this count.
            assert_eq!(client.used(*user).await, 0);
        }
        let before = client.store.status(NOW).redirects;
        let moves = async {
            // Users without a window get a window while the slot moves.
            cluster.begin_to_move(slot, from, to).await;
            client.answers(20).await;
            while cluster.move_key(slot, from, to).await {
                if limits == 1 {
                    client.answers(5).await;
                }
            }
            if limits == 1 {
                client.answers(50).await;
            }
            while cluster.move_key(slot, from, to).await {}
            cluster.end_move(slot, from, to).await;
            client.answers(50).await;
        };
        counts_are_exact_during(&client, if limits == 1 { all } else { known }, moves).await;
        let redirects = client.store.status(NOW).redirects;
        assert_held(&[
            Figure::fault_seen(
                "calls asked of both nodes",
                redirects.ask_redirects - before.ask_redirects,
            ),
            Figure::fault_seen(
                "calls told where the slot has moved",
                redirects.moved - before.moved,
            ),
            Figure::at_most("calls not served", redirects.down, 0),
        ]);
        cluster.nodes[to].assert_every_key_ends().await;
        until(|| {
            let groups = client.store.status(NOW).groups;
            usize::from(groups[to].slots) == cluster.share(to).len() + 1 || limits == 2
        })
        .await;
    }
}
