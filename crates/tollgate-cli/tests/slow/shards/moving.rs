//! Two processes change from one map to another, one after the other, under load.

use tollgate::model::Cost;
use tollgate_stores::rebalance::max_double_count;

use crate::kit::{Server, module_file};
use crate::shards::fleet::{Fleet, QUOTA, charge, node};

/// The word in the log of the node that leads the rebalance.
const LEADS: &str = "the new shards of moving subjects decide";

/// Subjects, some of which move.
const TOKENS: usize = 24;

/// How often a subject is moved in a rebalance: each of two nodes moves it once in each of two
/// phases.
const CARRIES: u64 = 4;

/// Each subject is admitted exactly its quota, whichever node decided.
fn moves_exactly(fleet: &Fleet, from: &[usize], to: &[usize]) {
    let old = fleet.policy("old.yaml", from, None);
    let new = fleet.policy("new.yaml", to, Some(from));
    let (first, second) = (node(&old), node(&old));
    let mut admitted = vec![0; TOKENS];
    let mut add = |counts: Vec<usize>| {
        admitted.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    };
    add(charge(&[&first, &second], TOKENS, 4));

    let successor = node(&new);
    drop(first);
    let first = successor;
    add(charge(&[&first, &second], TOKENS, 4));

    let successor = node(&new);
    drop(second);
    let second = successor;
    add(charge(&[&first, &second], TOKENS, 4));

    // One node may lead while the other still follows.
    first.wait_for_log(LEADS);
    add(charge(&[&first, &second], TOKENS, 4));
    second.wait_for_log(LEADS);
    assert!(admitted.iter().all(|count| *count == 32), "nobody loses quota: {admitted:?}");
    let more = charge(&[&first, &second], TOKENS, 8);
    admitted.iter_mut().zip(more).for_each(|(all, count)| *all += count);
    // Each node moves a subject once per phase, when a charge of the other node may be in flight.
    let held_back = max_double_count(CARRIES, Cost::ONE) as usize;
    let exact = QUOTA - held_back..=QUOTA;
    assert!(admitted.iter().all(|count| exact.contains(count)), "no window more: {admitted:?}");

    for node in [&first, &second] {
        let status =
            crate::support::client::fetch(node.listener("admin"), "GET", "/v1/status", None).body;
        assert!(status.contains("\"phase\":\"cutover\""), "{status}");
        assert!(status.contains("\"fallback_decisions\":0"), "{status}");
        assert!(status.contains("\"missed_writes\":0"), "{status}");
        assert!(status.contains("\"transfer_failures\":0"), "{status}");
        assert!(!status.contains("\"transferred\":0"), "{status}");
    }
}

#[tokio::test]
async fn a_shard_is_added() {
    moves_exactly(&Fleet::start(3).await, &[0, 1], &[0, 1, 2]);
}

#[tokio::test]
async fn a_shard_is_removed() {
    moves_exactly(&Fleet::start(3).await, &[0, 1, 2], &[0, 1]);
}

/// Shards may run the step in different forms with the same keys and values.
#[tokio::test]
async fn a_shard_with_the_module_is_added() {
    let fleet = Fleet::over(vec![Server::start().await, Server::start().await, module().await]);
    moves_exactly(&fleet, &[0, 1], &[0, 1, 2]);
}

#[tokio::test]
async fn a_shard_with_the_module_is_removed() {
    let fleet = Fleet::over(vec![Server::start().await, Server::start().await, module().await]);
    moves_exactly(&fleet, &[0, 1, 2], &[0, 1]);
}

#[tokio::test]
async fn a_shard_with_tables_is_added() {
    let fleet = Fleet::over(vec![module().await, module().await, module().await]);
    moves_exactly(&fleet.with_scripting("tables"), &[0, 1], &[0, 1, 2]);
}

#[tokio::test]
async fn a_shard_with_tables_is_removed() {
    let fleet = Fleet::over(vec![module().await, module().await, module().await]);
    moves_exactly(&fleet.with_scripting("tables"), &[0, 1, 2], &[0, 1]);
}

/// Starts a server that has loaded the module.
async fn module() -> Server {
    Server::start_with(&["--loadmodule", &module_file()]).await
}
