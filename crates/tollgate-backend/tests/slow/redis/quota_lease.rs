//! Quota leases on a real server. The tests check that nodes which start and stop admit exactly the
//! quota.

use std::time::{Duration, Instant};

use tollgate::model::key::Subject;
use tollgate::model::{
    Charge, ChargeId, Cost, DecisionSource, Limit, Operation, Store, Timestamp, Value,
};
use tollgate::{Clock, SystemClock};
use tollgate_backend::Backend;
use tollgate_policy::{LoadedPolicy, parse};
use tollgate_stores::quota_lease::LeaseCounts;

use crate::kit::Server;
use crate::redis::fleet::{PATIENT, key, open, shards};
use crate::redis::pairs::served;

const QUOTA: u64 = 2_000;

/// The longest wait for an expected event.
const PATIENCE: Duration = Duration::from_secs(60);

fn loaded(server: &Server, window: &str) -> LoadedPolicy {
    let text = format!(
        "subjects: {{ token: {{ header: authorization }} }}\n\
         limits: {{ core: {{ quota: {QUOTA}, {window}, per: token, mode: leased }} }}\n\
         rules: [{{ limits: core }}]\n\
         store: {{ redis: {{ {}, {PATIENT}, nodes: 2 }} }}\n",
        shards(&[server]),
    );
    parse("test.yaml", &text).unwrap()
}

/// A node, and the number of units that it admitted.
struct Node {
    store: Backend,
    limit: Limit,
    subject: Subject,
    charges: u64,
    admitted: u64,
}

impl Node {
    async fn start(loaded: &LoadedPolicy, number: u64) -> Self {
        let store = open(loaded);
        served(&store).await;
        let limit = (*loaded.policy.limits()[0].limit).clone();
        let subject = Subject::new([("token", Value::Clear(b"hot"))], &key());
        Self { store, limit, subject, charges: number << 32, admitted: 0 }
    }

    async fn apply(&self, now: Timestamp, operation: Operation) -> tollgate::model::Reading {
        let charge = Charge { limit: &self.limit, subject: &self.subject, operation };
        let readings = self.store.apply(now, &[charge]).await.unwrap();
        assert!(matches!(readings.source(), DecisionSource::Store | DecisionSource::DenyCache));
        readings[0]
    }

    /// Charges one unit. Returns whether the unit was admitted.
    async fn take(&mut self, now: Timestamp) -> bool {
        self.charges += 1;
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(self.charges.into()) };
        let is_admitted =
            self.apply(now, operation).await.admission == tollgate::model::Admission::Now;
        self.admitted += u64::from(is_admitted);
        is_admitted
    }

    fn leases(&self) -> LeaseCounts {
        let Backend::Redis(fleet) = &self.store else { panic!("{:?}", self.store) };
        fleet.counts().leases
    }
}

/// Two nodes over one server together admit exactly the quota, with few calls of the server.
#[tokio::test]
async fn two_nodes_admit_the_quota_to_the_last_unit() {
    for window in ["window: 1h", "window: 1h, algorithm: sliding_window, precision: 30m"] {
        let server = Server::start().await;
        let loaded = loaded(&server, window);
        let (mut one, mut other) = (Node::start(&loaded, 1).await, Node::start(&loaded, 2).await);
        let now = SystemClock.now();
        let until = Instant::now() + PATIENCE;
        // A node refunds its unused units within two sweeps. After the refund, the other node can
        // use these units.
        while one.admitted + other.admitted < QUOTA {
            one.take(now).await;
            if one.charges % 3 == 0 {
                other.take(now).await;
            }
            assert!(Instant::now() < until, "{} and {}", one.admitted, other.admitted);
        }
        for node in [&mut one, &mut other] {
            assert!(!node.take(now).await, "not one more");
            let LeaseCounts { decided, taken, units_lost, .. } = node.leases();
            assert!(decided > 100 && taken > 0 && taken < 100, "{decided} of {taken} leases");
            assert_eq!(units_lost, 0);
        }
        server.assert_every_key_ends().await;
    }
}

/// The unused units of a stopped node stay used only until the window ends.
#[tokio::test]
async fn a_node_that_dies_takes_no_more_than_its_lease_and_not_beyond_the_window() {
    let server = Server::start().await;
    let loaded = loaded(&server, "window: 1h, anchor: calendar");
    let (mut dying, mut other) = (Node::start(&loaded, 1).await, Node::start(&loaded, 2).await);
    let now = SystemClock.now();
    for _ in 0..50 {
        assert!(dying.take(now).await);
    }
    let unused = dying.leases().units_taken - dying.leases().decided;
    assert!(unused > 0, "{:?}", dying.leases());
    let before = dying.admitted;
    drop(dying);
    while other.take(now).await {}
    assert!(!other.take(now).await);
    let left = QUOTA - before - other.admitted;
    assert!(left <= unused, "{left} are left, and {unused} were unused");
    let over = Timestamp::from_millis((now.as_millis() / 3_600_000 + 1) * 3_600_000);
    let fresh = other.apply(over, Operation::Peek { cost: Cost::PEEK }).await;
    assert_eq!(fresh.used, 0);
}

/// A node that is about to stop refunds all of its unused units.
#[tokio::test]
async fn a_node_that_ends_gives_all_back() {
    let server = Server::start().await;
    let loaded = loaded(&server, "window: 1h");
    let mut node = Node::start(&loaded, 1).await;
    let now = SystemClock.now();
    for _ in 0..50 {
        assert!(node.take(now).await);
    }
    node.store.refund_leases(now).await;
    drop(node);
    let fresh = Node::start(&loaded, 2).await;
    assert_eq!(fresh.apply(now, Operation::Peek { cost: Cost::PEEK }).await.used, 50);
}
