//! Overrides and tenants while their documents move to another shard or store.

use std::time::Duration;

use tollgate::overrides::{OverrideChange, OverrideStorage, OverrideStore};
use tollgate_backend::OverrideSync;

use crate::kit::Server;
use crate::memcached_kit::Server as Memcached;
use crate::redis::fleet::PATIENT;
use crate::redis::overrides;
use crate::redis::overrides::{held, target};
use crate::tenants::{self, PATIENCE, quota, tenant};

/// The stores of a move in the syntax of the policy file.
struct Move {
    before: String,
    during: String,
    after: String,
    /// The store of the move in the other direction.
    back: String,
}

/// A node with tenants and overrides.
struct Node {
    tenants: tenants::Node,
    overrides: OverrideSync,
}

impl Node {
    /// Starts a node, and waits until the node has read the documents.
    async fn start(store: &str) -> Self {
        let tenants = tenants::node(store).await;
        assert!(tenants.1.loaded(PATIENCE).await);
        let overrides = OverrideSync::start(tenants.0.clone());
        overrides.refresh().await.unwrap();
        Self { tenants, overrides }
    }

    /// Sets the own quota of a tenant, and an override, both with this name.
    async fn set(&self, name: &str) {
        tenants::set(&self.tenants, &tenant(name, None, Some(20))).await.unwrap();
        overrides::set(&self.tenants.0, &self.overrides, name).await.unwrap();
    }

    async fn remove(&self, name: &str) {
        tenants::remove(&self.tenants, name).await;
        let removal = OverrideChange::Remove(target(name));
        self.overrides.change(self.tenants.0.now(), removal).await.unwrap();
    }

    /// Reads the changes of other nodes, and returns the number of overrides and the number of
    /// tenants.
    async fn read(&self) -> (usize, usize) {
        self.overrides.refresh().await.unwrap();
        self.tenants.1.refresh().await.unwrap();
        (held(&self.overrides), self.tenants.0.tenants().len())
    }
}

async fn documents_move(stores: &Move) {
    let Move { before, during, after, back } = stores;
    let (first, second) = (Node::start(before).await, Node::start(before).await);
    for name in ["one", "two"] {
        first.set(name).await;
    }
    assert_eq!(second.read().await, (2, 2));

    // The first nodes restart. Each of them reads the documents, and copies them at the same time.
    drop(first);
    let (third, fourth) = tokio::join!(Node::start(during), Node::start(during));
    assert_eq!((third.read().await, fourth.read().await), ((2, 2), (2, 2)));
    assert_eq!(quota(&third.tenants, "one"), 20);

    // Nodes with both policies share their changes.
    second.set("three").await;
    assert_eq!(third.read().await, (3, 3));
    third.set("four").await;
    fourth.set("five").await;
    fourth.remove("two").await;
    for node in [&second, &third, &fourth] {
        assert_eq!(node.read().await, (4, 4));
        assert_eq!(["one", "two"].map(|name| quota(&node.tenants, name)), [20, 3]);
    }
    assert_eq!(second.overrides.table(), fourth.overrides.table());

    // After the last restart, no node of the previous policy runs.
    drop((second, third, fourth));
    let (during_it, after_it) = (Node::start(during).await, Node::start(after).await);
    assert_eq!((during_it.read().await, after_it.read().await), ((4, 4), (4, 4)));
    after_it.set("six").await;
    assert_eq!(during_it.read().await, (5, 5));
    during_it.set("seven").await;
    assert_eq!(after_it.read().await, (6, 6));
    drop(during_it);

    // Overrides that were removed do not come back from the previous place.
    for name in ["one", "three", "four", "five", "six", "seven"] {
        after_it.remove(name).await;
    }
    drop(after_it);
    for store in [back, before] {
        assert_eq!(Node::start(store).await.read().await, (0, 0), "{store}");
    }
}

fn shard(name: &str, server: &Server) -> String {
    format!("shards: {{ {name}: {{ primary: \"{}\" }} }}", server.url())
}

fn redis(settings: &str) -> String {
    format!("{{ redis: {{ {PATIENT}, {settings} }} }}")
}

/// The bug: nodes looked for the documents only at the new owner. After the last restart, no node
/// had the overrides and tenants any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_shard_map_that_moved_the_documents_lost_them() {
    let (one, two) = (Server::start().await, Server::start().await);
    let (one, two) = (shard("a", &one), shard("b", &two));
    let moving = |from: &str, to: &str| redis(&format!("{to}, previous: {{ {from} }}"));
    let stores = Move {
        before: redis(&one),
        during: moving(&one, &two),
        after: redis(&two),
        back: moving(&two, &one),
    };
    documents_move(&stores).await;
}

/// The bug: a rollout looked for the documents only in the new store, and its end or its reversal
/// brought back old documents.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_lost_the_documents() {
    let (one, two, three) = (Server::start().await, Server::start().await, Server::start().await);
    let [one, two, three] = [&one, &two, &three].map(|server| redis(&shard("a", server)));
    let cached = Memcached::start();
    let cached = format!("{{ memcached: {{ servers: '{}', {PATIENT} }} }}", cached.address());
    let moving =
        |from: &str, to: &str| format!("{{ rollout: {{ percent: 0%, from: {from}, to: {to} }} }}");
    for (from, to) in [(&one, &two), (&cached, &three)] {
        let stores = Move {
            before: from.clone(),
            during: moving(from, to),
            after: to.clone(),
            back: moving(to, from),
        };
        documents_move(&stores).await;
    }
}

/// A place that does not answer must not look like a place without documents.
#[tokio::test(flavor = "multi_thread")]
async fn while_one_place_does_not_answer_the_documents_of_the_other_are_used() {
    let (one, two) = (Server::start().await, Server::start().await);
    let (from, to) = (shard("a", &one), shard("b", &two));
    let during = redis(&format!("{to}, previous: {{ {from} }}"));
    let node = Node::start(&during).await;
    node.set("one").await;
    drop(node);
    one.freeze();
    let (limiter, tenants) = tenants::node(&during).await;
    assert!(tenants.loaded(PATIENCE).await);
    let overrides = OverrideSync::start(limiter.clone());
    assert!(overrides.refresh().await.is_err(), "it cannot be copied");
    assert_eq!((held(&overrides), limiter.tenants().len()), (1, 1));
    // The bug: this state was reported as a failed read, and a failure of both places was not.
    let OverrideStorage::InStore { failure: None, .. } = overrides.storage() else { panic!() };
    two.freeze();
    assert!(overrides.refresh().await.is_err());
    let OverrideStorage::InStore { failure: Some(_), .. } = overrides.storage() else { panic!() };
    two.thaw();
    let read = async {
        while !matches!(overrides.storage(), OverrideStorage::InStore { failure: None, .. }) {
            let _ = overrides.refresh().await;
        }
    };
    tokio::time::timeout(PATIENCE, read).await.expect("the second place answers");
    // The change is stored when both places answer.
    overrides::set(&limiter, &overrides, "two").await.unwrap();
    let OverrideStorage::InStore { pending, .. } = overrides.storage() else { panic!() };
    assert_eq!(pending, [target("two")]);
    one.thaw();
    let stored = async {
        while overrides.refresh().await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, stored).await.expect("the places answer");
    for store in [&from, &to] {
        assert_eq!(held(&Node::start(&redis(store)).await.overrides), 2);
    }
}

/// The bug: if the read of a document failed once in one place, the node used the older document of
/// the other place for minutes, because it recorded the index as read.
#[tokio::test(flavor = "multi_thread")]
async fn one_failed_read_left_older_tenants_in_force() {
    let (one, two) = (Server::start().await, Server::start().await);
    let (from, to) = (shard("a", &one), shard("b", &two));
    let during = redis(&format!("{to}, previous: {{ {from} }}"));
    let first = Node::start(&during).await;
    first.set("acme").await;
    drop(first);
    let before = tenants::node(&redis(&from)).await;
    assert!(before.1.loaded(PATIENCE).await);
    tenants::set(&before, &tenant("acme", None, Some(30))).await.unwrap();
    drop(before);

    let mut connection = one.connect().await;
    let mut permit = async |keys: &str| {
        let mut operation = redis::cmd("ACL");
        operation.arg("SETUSER").arg("default").arg("resetkeys").arg(keys);
        operation.exec_async(&mut connection).await.unwrap();
    };
    // Only the index can be read in the old place.
    permit("~tg1:{tenants}:*").await;
    let node = tenants::node(&during).await;
    let older = async {
        while quota(&node, "acme") != 20 {
            let _ = node.1.refresh().await;
        }
    };
    tokio::time::timeout(PATIENCE, older).await.expect("the new place answers");
    permit("~*").await;
    node.1.refresh().await.unwrap();
    assert_eq!(quota(&node, "acme"), 30);
}
