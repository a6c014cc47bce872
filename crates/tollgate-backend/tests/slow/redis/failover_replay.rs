//! Tests of the units that a failover admits beyond the limit while replication is slow, with and
//! without failover replay.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::key::Subject;
use tollgate::model::{
    Algorithm, Charge, ChargeId, Cost, DecisionSource, Limit, Millis, Operation, ReplicationEpochs,
    Store, StoreError, Value,
};
use tollgate::{Clock, SystemClock};
use tollgate_backend::{Backend, ShardStatus};
use tollgate_policy::{LoadedPolicy, parse};
use tollgate_redis::{Keys, RedisShard, RuntimeChoice, ShardSettings};
use tollgate_stores::FailoverReplay;

use crate::kit::{Passage, Proxy, QUICK, Server};
use crate::redis::fleet::{PATIENT, key, open};
use crate::redis::pairs::until;

/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);
/// The delay from the primary to its replica.
const DELAY: Duration = Duration::from_millis(100);
/// The pause between two charges.
const PACE: Duration = Duration::from_millis(1);
const QUOTA: u64 = 400;
/// The number of charges that all nodes make in turn while replication is slow.
const IN_TURN: u64 = 300;
/// The number of further charges that the first node makes. The network loses the replication of
/// these charges.
const LAST: u64 = 5;
/// The number of charges that the last node makes on the new primary before the first node sends a
/// call.
const MEANWHILE: u64 = 3;

/// A primary, and a replica that is connected to the primary through a proxy.
struct Pair {
    primary: Server,
    replica: Server,
    network: Proxy,
}

impl Pair {
    async fn start() -> Self {
        let primary = Server::start_with(&QUICK).await;
        let replica = Server::start_with(&QUICK).await;
        let network = Proxy::start(primary.port()).await;
        let url = network.url();
        let (_, port) = url.rsplit_once(':').unwrap();
        replica.execute(&["REPLICAOF", "127.0.0.1", port]).await;
        primary.is_followed().await;
        Self { primary, replica, network }
    }

    /// Returns a policy over both servers.
    fn loaded(&self) -> LoadedPolicy {
        let [primary, replica] = [&self.primary, &self.replica].map(Server::url);
        let text = format!(
            "subjects: {{ token: {{ header: authorization }} }}\n\
             limits: {{ core: {{ quota: {QUOTA}, window: 1h, per: token }} }}\n\
             rules: [{{ limits: [core] }}]\n\
             store: {{ redis: {{ {PATIENT}, deny_cache: false, \
             shards: {{ a: {{ primary: \"{primary}\", replicas: \"{replica}\" }} }} }} }}\n",
        );
        parse("test.yaml", &text).unwrap()
    }

    /// Opens a store on both servers without failover replay.
    async fn bare(&self) -> RedisShard {
        let [primary, replica] =
            [&self.primary, &self.replica].map(|server| server.url().parse().unwrap());
        let settings = ShardSettings::replicated(primary, vec![replica]);
        let store = RedisShard::open(&settings, Keys::new(key()), RuntimeChoice::Best);
        store.ready(PATIENCE).await.unwrap();
        store.with_deadline(PATIENCE)
    }

    /// Starts the nodes of a fleet.
    async fn fleet<const N: usize>(&self) -> [Backend; N] {
        let loaded = self.loaded();
        let nodes = [(); N].map(|()| open(&loaded));
        for node in &nodes {
            until(|| node.status().iter().all(ShardStatus::is_served)).await;
        }
        nodes
    }

    /// Kills the primary's machine while `nodes` charge in turn, and promotes the replica. Returns
    /// the units that were admitted beyond the limit.
    async fn fail_over<S: Store>(&mut self, nodes: &[S]) -> u64 {
        let loaded = self.loaded();
        let limit = &loaded.policy.limits()[0].limit;
        let mut client = Client::new(limit);
        self.network.replies(Passage::Slow(DELAY));
        let started = Instant::now();
        for node in nodes.iter().cycle().take(IN_TURN as usize) {
            client.charge(node).await;
            sleep(PACE).await;
        }
        let took = started.elapsed();
        self.network.replies(Passage::Lost);
        client.charge_times(&nodes[0], LAST).await;
        self.primary.kill();
        self.replica.promote().await;
        client.charge_times(&nodes[nodes.len() - 1], MEANWHILE).await;
        for node in nodes {
            while client.charge(node).await {}
        }
        let beyond = client.admitted.saturating_sub(QUOTA);
        println!(
            "{IN_TURN} charges in {took:?}, replicated {DELAY:?} late, and {LAST} not at all: \
             {beyond} admitted beyond the limit"
        );
        beyond
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
    fn new(limit: &'l Limit) -> Self {
        let subject = Subject::new([("token", Value::Clear(b"one"))], &key());
        Self { limit, subject, sent: 0, admitted: 0 }
    }

    /// Charges one unit, and repeats the call until the store answers. Returns whether the unit is
    /// admitted.
    async fn charge(&mut self, node: &impl Store) -> bool {
        self.sent += 1;
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(self.sent) };
        let charge = Charge { limit: self.limit, subject: &self.subject, operation };
        let answered = async {
            loop {
                match node.apply(SystemClock.now(), &[charge]).await {
                    Ok(readings) if readings.source() == DecisionSource::Store => break readings,
                    Ok(_) | Err(_) => sleep(PACE).await,
                }
            }
        };
        let readings = timeout(PATIENCE, answered).await.expect("the store answers");
        self.admitted += u64::from(readings.all_admitted());
        readings.all_admitted()
    }

    async fn charge_times(&mut self, node: &impl Store, times: u64) {
        for _ in 0..times {
            self.charge(node).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_repair_a_failover_lets_through_what_was_not_replicated() {
    let mut pair = Pair::start().await;
    let node = pair.bare().await;
    let beyond = pair.fail_over(&[node]).await;
    assert!((LAST..=IN_TURN + LAST).contains(&beyond), "{beyond}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_one_node_a_failover_lets_nothing_through() {
    let mut pair = Pair::start().await;
    let nodes = pair.fleet::<1>().await;
    assert_eq!(pair.fail_over(&nodes).await, 0);
    let Backend::Redis(fleet) = &nodes[0] else { panic!("{nodes:?}") };
    let replayed = fleet.counts().replayed;
    assert!(replayed.units >= LAST, "the replica lacked nothing: {replayed:?}");
    assert_eq!(replayed.abandoned, 0, "{replayed:?}");
    pair.replica.assert_every_key_ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_two_nodes_a_failover_lets_no_more_through_than_is_said() {
    let mut pair = Pair::start().await;
    let nodes = pair.fleet::<2>().await;
    let beyond = pair.fail_over(&nodes).await;
    let bound = FailoverReplay::<RedisShard>::max_lost_units(LAST, MEANWHILE);
    assert!(beyond <= bound, "{beyond} beyond the limit, and {bound} is the most");
}

#[tokio::test]
async fn an_epoch_holds_charges_back_until_it_is_released_and_reads_never() {
    let server = Server::start().await;
    let settings = ShardSettings::new(server.url().parse().unwrap());
    let store = RedisShard::open(&settings, Keys::new(key()), RuntimeChoice::Best)
        .with_deadline(PATIENCE)
        .with_paused_epochs();
    store.ready(PATIENCE).await.unwrap();
    let window = FixedWindow::new(QUOTA, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    let limit = Limit::new("core", Algorithm::FixedWindow(window)).unwrap();
    let subject = Subject::new([("token", Value::Clear(b"one"))], &key());
    let apply = async |operation| {
        let charge = Charge { limit: &limit, subject: &subject, operation };
        store.apply(SystemClock.now(), &[charge]).await.map(|readings| readings[0].used)
    };
    let take = |cost| Operation::Charge { cost, id: ChargeId(1) };
    for read in [Operation::Peek { cost: Cost::ONE }, take(Cost::PEEK)] {
        assert_eq!(apply(read).await, Ok(0));
    }
    assert_eq!(apply(take(Cost::ONE)).await, Err(StoreError::Unavailable));
    store.release(store.epoch());
    assert_eq!(apply(take(Cost::ONE)).await, Ok(1));
}

/// A node that receives no calls still replays its recorded charges. Another node then counts these
/// charges.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_nobody_asks_reports_what_it_remembers() {
    let mut pair = Pair::start().await;
    let [sent, silent] = pair.fleet::<2>().await;
    let loaded = pair.loaded();
    let mut client = Client::new(&loaded.policy.limits()[0].limit);
    client.charge_times(&sent, 3).await;
    pair.network.replies(Passage::Lost);
    client.charge_times(&silent, LAST).await;
    pair.primary.kill();
    pair.replica.promote().await;
    let Backend::Redis(fleet) = &silent else { panic!("{silent:?}") };
    until(|| fleet.counts().replayed.units >= LAST).await;
    while client.charge(&sent).await {}
    assert_eq!(client.admitted, QUOTA);
}
