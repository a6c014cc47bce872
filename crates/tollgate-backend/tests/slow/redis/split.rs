//! Shards in which several servers report themselves as primary.

use std::time::Duration;

use tollgate::model::key::Subject;
use tollgate::model::{Charge, ChargeId, Cost, DecisionSource, Operation, Store, Value};
use tollgate::{Clock, SystemClock};
use tollgate_backend::{Backend, ShardStatus};
use tollgate_policy::LoadedPolicy;

use crate::kit::{QUICK, Server};
use crate::redis::fleet::{PATIENT, key, loaded, open};

const NODES: usize = 6;
const QUOTA: usize = 10;
/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

fn policy(primary: &Server, replica: &Server) -> LoadedPolicy {
    loaded(&format!(
        "shards: {{ a: {{ primary: \"{}\", replicas: \"{}\" }} }}, {PATIENT}",
        primary.url(),
        replica.url()
    ))
}

/// Charges one unit of one subject at `node`. Returns whether the store admitted the unit.
async fn charge(node: &Backend, loaded: &LoadedPolicy, id: usize) -> bool {
    let subject = Subject::new([("token", Value::Clear(b"one"))], &key());
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(id as u128) };
    let charge = Charge { limit: &loaded.policy.limits()[0].limit, subject: &subject, operation };
    let readings = node.apply(SystemClock.now(), &[charge]).await.unwrap();
    let source = readings.source();
    assert!(!matches!(source, DecisionSource::Fallback(_)), "{source:?}");
    readings.all_admitted()
}

/// Returns the units that [`NODES`] new nodes admit in turn after `charged` units were charged, and
/// the primary that all of these nodes chose.
async fn admitted(loaded: &LoadedPolicy, charged: usize) -> (usize, String) {
    let nodes: Vec<Backend> = (0..NODES).map(|_| open(loaded)).collect();
    let mut admitted = charged;
    for id in 0..4 * QUOTA {
        admitted += usize::from(charge(&nodes[id % NODES], loaded, 1_000 + id).await);
    }
    let chosen = |node: &Backend| node.status()[0].primary().map(str::to_owned);
    let first = chosen(&nodes[0]).expect("a primary");
    for node in &nodes {
        assert_eq!(chosen(node).as_deref(), Some(&*first));
    }
    (admitted, first)
}

/// Waits until `node` charges `server` and reports this number of primaries.
async fn charges(node: &Backend, server: &Server, primaries: usize) {
    let seen = async {
        loop {
            let status: ShardStatus = node.status().remove(0);
            if status.primary() == Some(&*server.url()) && status.claimed_by.len() == primaries {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("a node charges the server");
}

#[tokio::test]
async fn replication_that_was_never_set_up_splits_no_count() {
    let (primary, other) = (Server::start_with(&QUICK).await, Server::start_with(&QUICK).await);
    let loaded = policy(&primary, &other);
    assert_eq!(admitted(&loaded, 0).await, (QUOTA, primary.url()));
    let node = open(&loaded);
    charges(&node, &primary, 2).await;
}

#[tokio::test]
async fn an_old_primary_that_returns_empty_is_charged_by_no_node() {
    let (mut old, new) = (Server::start_with(&QUICK).await, Server::start_with(&QUICK).await);
    new.follow(&old).await;
    let loaded = policy(&old, &new);
    let node = open(&loaded);
    assert!(charge(&node, &loaded, 1).await);
    old.is_followed().await;
    charges(&node, &old, 1).await;
    // An operator promotes the replica, and a supervisor starts the old primary again without data.
    old.kill();
    new.promote().await;
    charges(&node, &new, 1).await;
    assert!(charge(&node, &loaded, 2).await);
    old.start_again(&QUICK);
    charges(&node, &new, 2).await;
    assert!(charge(&node, &loaded, 3).await);
    // Nodes that start at this point have not observed the split.
    assert_eq!(admitted(&loaded, 3).await, (QUOTA, new.url()));
}

#[tokio::test]
async fn an_old_primary_that_returns_with_old_data_is_charged_by_no_node() {
    let (mut old, new) = (Server::start_with(&QUICK).await, Server::start_with(&QUICK).await);
    new.follow(&old).await;
    let loaded = policy(&old, &new);
    let node = open(&loaded);
    assert!(charge(&node, &loaded, 1).await);
    old.is_followed().await;
    charges(&node, &old, 1).await;
    old.execute(&["SAVE"]).await;
    old.kill();
    new.promote().await;
    charges(&node, &new, 1).await;
    assert!(charge(&node, &loaded, 2).await);
    old.start_again(&QUICK);
    charges(&node, &new, 2).await;
    assert!(charge(&node, &loaded, 3).await);
    assert_eq!(admitted(&loaded, 3).await, (QUOTA, new.url()));
}
