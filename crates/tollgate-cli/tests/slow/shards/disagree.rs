//! Two nodes with different maps and no rebalance between them: a mistake with a bounded effect.

use std::time::Duration;

use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::{Algorithm, Limit, Millis};
use tollgate_conformance::{Figure, assert_held};
use tollgate_stores::rebalance::max_over_admission;

use crate::shards::fleet::{Fleet, QUOTA, charge, node, shards};

/// The log line about a shard that another node has at other servers.
const ELSEWHERE: &str = "1 node uses this map and not this shard";

const TOKENS: usize = 24;
/// The number of charges of each token at each node while the nodes disagree.
const APART: usize = 10;

/// The log line of a node about the other node, which has another shard map.
const ALARM: &str = "1 node uses another shard map";

#[tokio::test]
async fn what_is_admitted_twice_is_what_the_other_map_admits_and_is_reported() {
    let fleet = Fleet::start(2).await;
    let right = node(&fleet.policy("right.yaml", &[0], None));
    let wrong = node(&fleet.policy("wrong.yaml", &[0, 1], None));
    let mut admitted = charge(&[&right, &wrong], TOKENS, APART);
    assert!(admitted.iter().all(|units| *units == 2 * APART), "{admitted:?}");
    for node in [&right, &wrong] {
        // The second node may have detected the other before its listeners were open.
        if !node.response().contains(ALARM) {
            node.wait_for_log(ALARM);
        }
    }
    drop(wrong);
    let mended = node(&fleet.policy("mended.yaml", &[0], None));
    let rest = charge(&[&right, &mended], TOKENS, QUOTA);
    admitted.iter_mut().zip(rest).for_each(|(all, units)| *all += units);

    let window =
        FixedWindow::new(QUOTA as u64, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    let limit = Limit::new("core", Algorithm::FixedWindow(window)).unwrap();
    // The most units that are admitted in one second while the nodes disagree.
    let bound = max_over_admission(&limit, APART as u64, Duration::from_secs(1));
    let beyond: Vec<_> = admitted.iter().map(|units| units.saturating_sub(QUOTA)).collect();
    let most = *beyond.iter().max().unwrap() as u64;
    assert_held(&[
        Figure::fault_seen(
            "units above the limits of all clients",
            beyond.iter().sum::<usize>() as u64,
        ),
        Figure::at_most("units above a client's limit", most, bound),
    ]);
    assert!(admitted.iter().all(|units| *units >= QUOTA), "nobody loses quota: {admitted:?}");
    assert!(beyond.contains(&0), "who lives in the same place is counted there once: {beyond:?}");
}

/// A shard map consists of names. Two nodes with different servers for the same name therefore have
/// the same map.
#[tokio::test]
async fn a_shard_that_is_elsewhere_for_one_node_is_reported() {
    let fleet = Fleet::start(3).await;
    let right = fleet.policy("right.yaml", &[0, 1], None);
    let text = std::fs::read_to_string(&right).unwrap();
    let wrong = right.with_file_name("wrong.yaml");
    std::fs::write(&wrong, text.replace(&fleet.servers[1].url(), &fleet.servers[2].url())).unwrap();
    let nodes = [node(&right), node(&wrong)];
    let admitted = charge(&nodes.each_ref(), TOKENS, QUOTA);
    let beyond: Vec<_> = admitted.iter().map(|units| units.saturating_sub(QUOTA)).collect();
    let most = *beyond.iter().max().unwrap() as u64;
    assert_held(&[
        Figure::fault_seen(
            "units above the limits of all clients",
            beyond.iter().sum::<usize>() as u64,
        ),
        Figure::at_most("units above a client's limit", most, QUOTA as u64),
    ]);
    for node in &nodes {
        node.wait_for_log(ELSEWHERE);
    }
    let arguments = ["--policy", right.to_str().unwrap(), "--plan", wrong.to_str().unwrap()];
    let plan = shards(&arguments);
    let response = String::from_utf8_lossy(&plan.stdout);
    assert!(
        response.contains("s1 has other servers") && !response.contains("nothing to do"),
        "{response}"
    );
}
