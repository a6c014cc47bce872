//! Tests of the units that a failover of a cluster's primary admits beyond the limits, with and
//! without failover replay.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tollgate::model::key::Subject;
use tollgate::model::{Charge, ChargeId, Cost, DecisionSource, Limit, Operation, Store, Value};
use tollgate::{Clock, SystemClock};
use tollgate_backend::{Backend, RedisServers, ShardStatus};
use tollgate_conformance::{Figure, assert_held};
use tollgate_policy::{LoadedPolicy, parse};
use tollgate_redis::{ClusterSettings, Endpoint, Keys, LinkLimits, RedisCluster, RuntimeChoice};
use tollgate_stores::{Atomic, FailoverReplay};

use crate::kit::{Cluster, PRIMARIES, Replicas, Server, Version};
use crate::redis::fleet::{PATIENT, key, open};
use crate::redis::pairs::until;

/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time for which a primary refuses calls before it is killed.
const REFUSING: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_millis(1);
const QUOTA: u64 = 20;
/// The number of clients that are charged. Each of the three primaries owns some of the clients.
const CLIENTS: u64 = 24;
/// The number of units of each client with charges that are replicated.
const HEARD: u64 = 4;
/// The number of units of each client that the first node charges and that are not replicated.
const LAST: u64 = 5;
/// The number of units of each client that the last node charges at the promoted replica, before
/// the first node sends a call.
const MEANWHILE: u64 = 3;

/// Returns a policy over `cluster`.
fn loaded(cluster: &Cluster) -> LoadedPolicy {
    let text = format!(
        "subjects: {{ token: {{ header: authorization }} }}\n\
         limits: {{ core: {{ quota: {QUOTA}, window: 1h, per: token }} }}\n\
         rules: [{{ limits: [core] }}]\n\
         store: {{ redis: {{ {PATIENT}, deny_cache: false, \
         shards: {{ a: {{ nodes: \"{}\" }} }} }} }}\n",
        cluster.nodes[0].url(),
    );
    parse("test.yaml", &text).unwrap()
}

/// Starts the nodes of a fleet over `cluster`.
async fn fleet<const N: usize>(cluster: &Cluster) -> [Backend; N] {
    let loaded = loaded(cluster);
    let nodes = [(); N].map(|()| open(&loaded));
    for node in &nodes {
        until(|| node.status().iter().all(ShardStatus::is_served)).await;
    }
    nodes
}

/// The end of the first primary in [`fail_over`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    /// The primary refuses all calls with `CLUSTERDOWN` for longer than the 3 s of charges that are
    /// replayed, and then it is killed.
    RefusesAndIsKilled,
}

/// Kills the first primary during charges through `nodes`, and promotes its replica, which lacks
/// the last charges. Returns the units that each client is admitted.
async fn fail_over<S: Store>(cluster: &mut Cluster, nodes: &[S], end: End) -> Vec<u64> {
    let loaded = loaded(cluster);
    let limit = &loaded.policy.limits()[0].limit;
    let mut clients: Vec<_> = (0..CLIENTS).map(|number| Client::new(limit, number)).collect();
    for client in &mut clients {
        for node in nodes.iter().cycle().take(HEARD as usize) {
            client.charge(node).await;
        }
    }
    for primary in &cluster.nodes[..PRIMARIES] {
        primary.has_replicated().await;
        primary.replicates_no_more().await;
    }
    for client in &mut clients {
        client.charge_times(&nodes[0], LAST).await;
    }
    if end == End::RefusesAndIsKilled {
        // A primary without one of its slots takes the whole cluster for down.
        cluster.nodes[0].execute(&["CLUSTER", "DELSLOTS", "0"]).await;
        cluster.nodes[0].wait_for_field("cluster_state", "fail").await;
        for number in 2 * CLIENTS..4 * CLIENTS {
            Client::new(limit, number).try_charge(&nodes[0]).await;
        }
        sleep(REFUSING).await;
    }
    cluster.kill(0).await;
    let successor = &cluster.nodes[PRIMARIES];
    successor.is_primary().await;
    successor.wait_for_field("cluster_state", "ok").await;
    decides_by_store(&nodes[nodes.len() - 1], limit).await;
    for client in &mut clients {
        client.charge_times(&nodes[nodes.len() - 1], MEANWHILE).await;
    }
    for node in nodes {
        decides_by_store(node, limit).await;
    }
    for client in &mut clients {
        for node in nodes {
            while client.charge(node).await {}
        }
    }
    clients.iter().map(|client| client.admitted).collect()
}

/// Waits until `node` reaches every primary. The calls charge other clients than the measured
/// clients.
///
/// If these calls charged the measured clients, the fallback of the node could admit units and
/// charge them to the store later. These units have a bound of their own, the node's share of the
/// limit, and would add to [`MEANWHILE`].
async fn decides_by_store(node: &impl Store, limit: &Limit) {
    for number in CLIENTS..2 * CLIENTS {
        Client::new(limit, number).charge(node).await;
    }
}

/// A client with a limit.
struct Client<'l> {
    limit: &'l Limit,
    subject: Subject,
    sent: u128,
    admitted: u64,
}

impl<'l> Client<'l> {
    fn new(limit: &'l Limit, number: u64) -> Self {
        let subject = Subject::new([("token", Value::Clear(&number.to_be_bytes()))], &key());
        Self { limit, subject, sent: 0, admitted: 0 }
    }

    /// Charges one unit, and repeats the call until the store answers. Returns whether the unit is
    /// admitted. Units that the node's fallback admits count as admitted too, because the node
    /// charges them to the store later.
    async fn charge(&mut self, node: &impl Store) -> bool {
        self.sent += 1;
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(self.sent) };
        let charge = Charge { limit: self.limit, subject: &self.subject, operation };
        let mut fallback = 0;
        let answered = async {
            loop {
                match node.apply(SystemClock.now(), &[charge]).await {
                    Ok(readings) if readings.source() == DecisionSource::Store => break readings,
                    Ok(readings) => fallback += u64::from(readings.all_admitted()),
                    Err(_) => {}
                }
                sleep(PAUSE).await;
            }
        };
        let readings = timeout(PATIENCE, answered).await.expect("the store answers");
        self.admitted += fallback + u64::from(readings.all_admitted());
        readings.all_admitted()
    }

    /// Charges one unit in a single call. The node's fallback may decide.
    async fn try_charge(&mut self, node: &impl Store) {
        self.sent += 1;
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(self.sent) };
        let charge = Charge { limit: self.limit, subject: &self.subject, operation };
        let _ = node.apply(SystemClock.now(), &[charge]).await;
    }

    async fn charge_times(&mut self, node: &impl Store, times: u64) {
        for _ in 0..times {
            self.charge(node).await;
        }
    }
}

impl Server {
    /// Waits until a replica has all writes of this server.
    async fn has_replicated(&self) {
        let mut connection = self.connect().await;
        let info = async |connection: &mut _| -> String {
            redis::cmd("INFO").arg("replication").query_async(connection).await.unwrap()
        };
        let number = |info: &str, from: &str, to: char| -> Option<u64> {
            let (_, rest) = info.split_once(from)?;
            rest.split(to).next()?.trim().parse().ok()
        };
        loop {
            let info = info(&mut connection).await;
            let received = number(&info, ",offset=", ',');
            if received.is_some() && received == number(&info, "master_repl_offset:", '\n') {
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Stops replication to all replicas.
    async fn replicates_no_more(&self) {
        self.execute(&["ACL", "SETUSER", "default", "-psync", "-sync"]).await;
        self.execute(&["CLIENT", "KILL", "TYPE", "replica"]).await;
    }
}

fn most(units: &[u64]) -> u64 {
    units.iter().copied().max().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_repair_the_failover_of_a_node_lets_through_what_was_not_replicated() {
    let mut cluster = Cluster::start(Version::default(), Replicas::OneEach).await;
    let mut settings = ClusterSettings::new([cluster.nodes[0].url().parse::<Endpoint>().unwrap()]);
    settings.link = LinkLimits { proof: PATIENCE, seek: PATIENCE, ..LinkLimits::default() };
    let bare = RedisCluster::open(settings, Keys::new(key()), RuntimeChoice::Best);
    bare.ready(PATIENCE).await.unwrap();
    let servers = RedisServers::Cluster(Box::new(bare.with_deadline(PATIENCE)));
    let node = Atomic::new(FailoverReplay::new(servers));
    let admitted = fail_over(&mut cluster, &[node], End::Killed).await;
    let beyond: Vec<_> = admitted.iter().map(|admitted| admitted - QUOTA).collect();
    assert!(beyond.iter().all(|beyond| [0, LAST].contains(beyond)), "{beyond:?}");
    assert_held(&[
        Figure::fault_seen("units above the limits of all clients", beyond.iter().sum()),
        Figure::at_most("units above a client's limit", most(&beyond), LAST),
    ]);
}

/// Asserts that a failover through one node admits no unit beyond a limit.
async fn assert_nothing_is_lost(end: End) {
    let mut cluster = Cluster::start(Version::default(), Replicas::OneEach).await;
    let nodes = fleet::<1>(&cluster).await;
    let admitted = fail_over(&mut cluster, &nodes, end).await;
    assert!(admitted.iter().all(|admitted| *admitted >= QUOTA), "nobody loses quota: {admitted:?}");
    let Backend::Redis(fleet) = &nodes[0] else { panic!("{nodes:?}") };
    let replayed = fleet.counts().replayed;
    assert!((1..CLIENTS).contains(&replayed.limits), "of one primary's slots: {replayed:?}");
    assert_eq!(replayed.units, LAST * replayed.limits, "each unit once: {replayed:?}");
    assert_held(&[
        Figure::fault_seen("units charged again at the successor", replayed.units),
        Figure::at_most("units that could not be charged again", replayed.abandoned, 0),
        Figure::at_most("units above a client's limit", most(&admitted) - QUOTA, 0),
    ]);
    cluster.nodes[PRIMARIES].assert_every_key_ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_one_node_the_failover_of_a_node_lets_nothing_through() {
    assert_nothing_is_lost(End::Killed).await;
}

/// The defect: the node replayed the charges of the 3 s before the new primary answered, although
/// the old primary had refused all calls for longer than that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_refuses_calls_before_its_failover_loses_nothing_through_one_node() {
    assert_nothing_is_lost(End::RefusesAndIsKilled).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_two_nodes_the_failover_of_a_node_lets_no_more_through_than_is_said() {
    let mut cluster = Cluster::start(Version::default(), Replicas::OneEach).await;
    let nodes = fleet::<2>(&cluster).await;
    let admitted = fail_over(&mut cluster, &nodes, End::Killed).await;
    let bound = FailoverReplay::<RedisServers>::max_lost_units(LAST, MEANWHILE);
    assert!(admitted.iter().all(|admitted| *admitted >= QUOTA), "nobody loses quota: {admitted:?}");
    let Backend::Redis(fleet) = &nodes[0] else { panic!("{nodes:?}") };
    assert_held(&[
        Figure::fault_seen("units charged again at the successor", fleet.counts().replayed.units),
        Figure::at_most("units above a client's limit", most(&admitted) - QUOTA, bound),
    ]);
}
