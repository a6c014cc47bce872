//! A Redis Cluster for one test.

#![allow(dead_code, reason = "each test file uses what it is about")]

use std::time::Duration;

use redis::Value;
use redis::aio::MultiplexedConnection;

use super::{PATIENCE, Server, Version};

/// The pause between two checks whether the nodes agree on a state.
const PAUSE: Duration = Duration::from_millis(10);

/// The number of slots in a cluster.
const SLOTS: u16 = 16_384;

/// The number of primaries.
pub const PRIMARIES: usize = 3;

/// The time in milliseconds after which nodes mark another node as failed when a node is killed.
const NODE_TIMEOUT: &str = "1000";

/// The same time while the cluster forms. The nodes exchange their states every half of it. If it
/// were shorter, a replica could take over before the cluster has formed on a busy machine.
const FORMING_NODE_TIMEOUT: &str = "4000";

/// A longer timeout for tests without failover. With this timeout, a machine that is busy for a
/// second causes no failover.
const PATIENT_NODE_TIMEOUT: &str = "15000";

/// The arguments of a cluster node. A replica with these arguments takes over even if it is not up
/// to date, and replication starts without delay, so tests wait only for the events that they
/// check.
const NODE: [&str; 10] = [
    "--cluster-enabled",
    "yes",
    "--cluster-config-file",
    "nodes.conf",
    "--cluster-node-timeout",
    FORMING_NODE_TIMEOUT,
    "--cluster-replica-validity-factor",
    "0",
    "--repl-diskless-sync-delay",
    "0",
];

/// Three primaries that share the slots evenly, and optionally a replica of each primary.
pub struct Cluster {
    /// The primaries, in the order of their slots, and then the replicas in the same order.
    pub nodes: Vec<Server>,
}

/// Whether each primary of a cluster has a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    None,
    OneEach,
}

impl Cluster {
    /// Starts a cluster. Waits until all nodes report that the cluster serves requests, and until
    /// the replicas are in sync.
    pub async fn start(version: Version, replicas: Replicas) -> Self {
        let count = match replicas {
            Replicas::None => PRIMARIES,
            Replicas::OneEach => 2 * PRIMARIES,
        };
        let mut nodes = Vec::new();
        for number in 0..count {
            let node = Server::start_version(version, &NODE).await;
            node.execute(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]).await;
            nodes.push(node);
        }
        let cluster = Self { nodes };
        for place in 0..PRIMARIES {
            let slots: Vec<_> = cluster.share(place).map(|slot| slot.to_string()).collect();
            let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
            cluster.nodes[place].execute(&words.collect::<Vec<_>>()).await;
        }
        for node in &cluster.nodes[1..] {
            node.meet(&cluster.nodes[0]).await;
        }
        cluster.agree("cluster_known_nodes", &count.to_string()).await;
        for place in PRIMARIES..count {
            let id = cluster.nodes[place - PRIMARIES].id().await;
            cluster.nodes[place].execute(&["CLUSTER", "REPLICATE", &id]).await;
        }
        cluster.agree("cluster_state", "ok").await;
        for place in 0..count {
            cluster.shows_all(place, count).await;
        }
        for node in &cluster.nodes[PRIMARIES..] {
            node.is_in_step().await;
        }
        cluster.hold_for_dead_after(PATIENT_NODE_TIMEOUT).await;
        cluster
    }

    /// Kills the node at the index `place`. The other nodes soon mark the killed node as failed.
    pub async fn kill(&mut self, place: usize) {
        self.hold_for_dead_after(NODE_TIMEOUT).await;
        self.nodes[place].kill();
    }

    async fn hold_for_dead_after(&self, millis: &str) {
        for node in &self.nodes {
            node.execute(&["CONFIG", "SET", "cluster-node-timeout", millis]).await;
        }
    }

    /// Returns the slots that the primary at the index `place` owns at first.
    pub fn share(&self, place: usize) -> std::ops::Range<u16> {
        let edge = |place: usize| (usize::from(SLOTS) * place / PRIMARIES) as u16;
        edge(place)..edge(place + 1)
    }

    /// Returns the index of the primary that owns `slot` at first.
    pub fn place_of(&self, slot: u16) -> usize {
        (0..PRIMARIES).find(|place| self.share(*place).contains(&slot)).expect("a slot")
    }

    /// Returns the URLs of the nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Server::url).collect()
    }

    /// Waits until every node reports this value of the field in `CLUSTER INFO`.
    pub async fn agree(&self, field: &str, value: &str) {
        for node in &self.nodes {
            node.wait_for_field(field, value).await;
        }
    }

    /// Starts to move `slot` from the primary at the index `from` to the primary at the index `to`.
    pub async fn begin_to_move(&self, slot: u16, from: usize, to: usize) {
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let slot = slot.to_string();
        let words = ["CLUSTER", "SETSLOT", &slot];
        let (source_id, target_id) = (source.id().await, target.id().await);
        target.execute(&[&words[..], &["IMPORTING", &source_id]].concat()).await;
        source.execute(&[&words[..], &["MIGRATING", &target_id]].concat()).await;
    }

    /// Moves one key of `slot`. Returns false if no key is left.
    pub async fn move_key(&self, slot: u16, from: usize, to: usize) -> bool {
        let mut source = self.nodes[from].connect().await;
        let keys: Vec<String> = redis::cmd("CLUSTER")
            .arg("GETKEYSINSLOT")
            .arg(slot)
            .arg(1)
            .query_async(&mut source)
            .await
            .expect("keys");
        let Some(key) = keys.first() else { return false };
        redis::cmd("MIGRATE")
            .arg("127.0.0.1")
            .arg(self.nodes[to].port())
            .arg(key)
            .arg(0)
            .arg(PATIENCE.as_millis() as u64)
            .exec_async(&mut source)
            .await
            .expect("a key that moves");
        true
    }

    /// Ends the move. The new owner is set first, so neither node redirects to a node that does not
    /// own the slot yet.
    pub async fn end_move(&self, slot: u16, from: usize, to: usize) {
        let id = self.nodes[to].id().await;
        for place in [to, from] {
            let words = ["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &id];
            self.nodes[place].execute(&words).await;
        }
    }

    /// Waits until the node at the index `place` lists all `count` nodes.
    async fn shows_all(&self, place: usize, count: usize) {
        let mut connection = self.nodes[place].connect().await;
        let shown = async {
            loop {
                let slots: Value = redis::cmd("CLUSTER")
                    .arg("SLOTS")
                    .query_async(&mut connection)
                    .await
                    .expect("slots");
                let text = format!("{slots:?}");
                if self.nodes[..count]
                    .iter()
                    .all(|node| text.contains(&format!("int({})", node.port())))
                {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, shown).await.expect("the nodes know each other");
    }
}

impl Server {
    /// Returns the node id of the server in the cluster.
    pub async fn id(&self) -> String {
        let mut connection = self.connect().await;
        redis::cmd("CLUSTER").arg("MYID").query_async(&mut connection).await.expect("an id")
    }

    /// Joins the server to the cluster of `other`.
    pub async fn meet(&self, other: &Self) {
        self.execute(&["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string()]).await;
    }

    /// Waits until the node reports this value of the field in `CLUSTER INFO`.
    pub async fn wait_for_field(&self, field: &str, value: &str) {
        let mut connection = self.connect().await;
        let wanted = format!("{field}:{value}");
        let shown = async {
            while !cluster_info(&mut connection).await.lines().any(|line| line == wanted) {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, shown).await.unwrap_or_else(|_| panic!("never {wanted}"));
    }

    /// Waits until the server is a replica in sync with its primary.
    pub async fn is_in_step(&self) {
        self.has_role("connected").await;
    }

    /// Waits until the server reports the role of a primary.
    pub async fn is_primary(&self) {
        self.has_role("master").await;
    }

    async fn has_role(&self, word: &str) {
        let mut connection = self.connect().await;
        let shown = async {
            loop {
                let role: Value =
                    redis::cmd("ROLE").query_async(&mut connection).await.expect("a role");
                if format!("{role:?}").contains(word) {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::time::timeout(PATIENCE, shown).await.unwrap_or_else(|_| panic!("never {word}"));
    }
}

async fn cluster_info(connection: &mut MultiplexedConnection) -> String {
    redis::cmd("CLUSTER").arg("INFO").query_async(connection).await.expect("its state")
}
