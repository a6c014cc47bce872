//! Nodes with clocks that differ from the clock of their store.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tollgate::model::key::Subject;
use tollgate::model::{Charge, ChargeId, Cost, DecisionSource, Operation, Store, Timestamp, Value};
use tollgate::{Clock, SystemClock};
use tollgate_backend::Backend;
use tollgate_policy::{LoadedPolicy, parse};

use crate::kit::{Server, Version, WallClock};
use crate::redis::fleet::{PATIENT, key, open};

const QUOTA: u64 = 10;
const CALLS: u64 = 100;
/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);
const HALF_A_MINUTE: i64 = 30_000;
const DAY: i64 = 86_400_000;

/// The settings of a limit of every algorithm. No window of these limits ends during a test.
const LIMITS: [(&str, &str); 6] = [
    ("fixed_window", "window: 1h"),
    ("sliding_window", "window: 1h"),
    ("two_bucket", "window: 1h"),
    ("sliding_log", "window: 1h"),
    ("token_bucket", "window: 1d, burst: 10"),
    ("concurrency", "permit_ttl: 1h"),
];

/// This machine's clock with an error, which is the number of milliseconds in this value.
#[derive(Clone, Debug, Default)]
struct SkewedClock(Arc<AtomicI64>);

impl SkewedClock {
    fn set(&self, off: i64) {
        self.0.store(off, Ordering::Relaxed);
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let now = SystemClock.now().as_millis();
        Timestamp::from_millis(now.saturating_add_signed(self.0.load(Ordering::Relaxed)))
    }
}

/// A node with a clock that can be wrong.
struct Node {
    store: Backend,
    clock: Arc<dyn Clock>,
}

impl Node {
    /// Creates a node and does not wait until it is connected.
    fn new(loaded: &LoadedPolicy, clock: SkewedClock) -> Self {
        let store = open(loaded);
        let clock = store.clock(clock);
        Self { store, clock }
    }

    /// Returns the number of calls that found state with an impossible time in the future.
    fn discarded(&self) -> u64 {
        let Backend::Redis(redis) = &self.store else { panic!("{:?}", self.store) };
        redis.counts().discarded
    }

    async fn is_admitted(&self, loaded: &LoadedPolicy, subject: &Subject, id: u64) -> bool {
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(id.into()) };
        let charge = Charge { limit: &loaded.policy.limits()[0].limit, subject, operation };
        let readings = self.store.apply(self.clock.now(), &[charge]).await.unwrap();
        let source = readings.source();
        assert!(!matches!(source, DecisionSource::Fallback(_)), "{source:?}");
        readings.all_admitted()
    }
}

fn loaded(algorithm: &str, rest: &str, store: &str) -> LoadedPolicy {
    let text = format!(
        "subjects: {{ token: {{ header: authorization }} }}\n\
         limits: {{ core: {{ algorithm: {algorithm}, quota: {QUOTA}, {rest}, per: token }} }}\n\
         rules: [{{ limits: core }}]\n\
         store: {{ {store} }}\n",
    );
    parse("test.yaml", &text).unwrap()
}

fn subject(name: &str) -> Subject {
    Subject::new([("token", Value::Clear(name.as_bytes()))], &key())
}

/// Returns how many of [`CALLS`] calls two nodes admit in turn. The node with the wrong clock is
/// the first.
async fn admitted(loaded: &LoadedPolicy, nodes: [&Node; 2], name: &str) -> u64 {
    let subject = subject(name);
    let mut admitted = 0;
    for call in 0..CALLS {
        let node = nodes[(call % 2) as usize];
        admitted += u64::from(node.is_admitted(loaded, &subject, call).await);
    }
    admitted
}

fn redis(server: &Server) -> String {
    format!("redis: {{ shards: {{ a: {{ primary: \"{}\" }} }}, {PATIENT} }}", server.url())
}

#[tokio::test]
async fn a_clock_beyond_skew_max_switches_no_limit_off() {
    let server = Server::start().await;
    for (algorithm, rest) in LIMITS {
        let loaded = loaded(algorithm, rest, &redis(&server));
        for off in [HALF_A_MINUTE, -HALF_A_MINUTE, DAY, -DAY] {
            let wrong = SkewedClock::default();
            wrong.set(off);
            // Both nodes decide before they are connected. Even the first decision must not use the
            // wrong clock.
            let nodes = [Node::new(&loaded, wrong), Node::new(&loaded, SkewedClock::default())];
            let name = format!("{algorithm} {off}");
            let admitted = admitted(&loaded, [&nodes[0], &nodes[1]], &name).await;
            assert_eq!(admitted, QUOTA, "{name} ms");
        }
    }
}

#[tokio::test]
async fn a_clock_that_is_set_while_its_node_runs_switches_no_limit_off() {
    let server = Server::start().await;
    for (algorithm, rest) in LIMITS {
        let loaded = loaded(algorithm, rest, &redis(&server));
        let clock = SkewedClock::default();
        let nodes = [Node::new(&loaded, clock.clone()), Node::new(&loaded, SkewedClock::default())];
        let subject = subject(&format!("stepping {algorithm}"));
        let mut admitted = 0;
        for call in 0..CALLS {
            clock.set([0, DAY, -DAY, HALF_A_MINUTE][(call / 2 % 4) as usize]);
            let node = &nodes[(call % 2) as usize];
            admitted += u64::from(node.is_admitted(&loaded, &subject, call).await);
        }
        assert_eq!(admitted, QUOTA, "{algorithm}");
    }
}

#[tokio::test]
async fn clocks_that_are_off_to_both_sides_of_skew_max_never_meet_impossible_state() {
    let server = Server::start().await;
    for (algorithm, rest) in LIMITS {
        let loaded = loaded(algorithm, rest, &redis(&server));
        let clocks = [SkewedClock::default(), SkewedClock::default()];
        clocks[0].set(4_900);
        clocks[1].set(-4_900);
        let nodes = clocks.map(|clock| Node::new(&loaded, clock));
        let name = format!("both sides {algorithm}");
        let admitted = admitted(&loaded, [&nodes[0], &nodes[1]], &name).await;
        assert_eq!(admitted, QUOTA, "{algorithm}");
        assert_eq!(nodes.map(|node| node.discarded()), [0, 0], "{algorithm}");
    }
}

#[tokio::test]
async fn a_store_whose_clock_is_set_costs_one_window_at_the_most() {
    for off in [DAY, -DAY] {
        let clock = WallClock::new();
        let server = Server::start_by(Version::default(), &clock, &[]).await;
        let loaded = loaded("fixed_window", "window: 1h", &redis(&server));
        let nodes = [(); 2].map(|()| Node::new(&loaded, SkewedClock::default()));
        let name = format!("set {off}");
        let before = admitted(&loaded, [&nodes[0], &nodes[1]], &name).await;
        clock.set(off, &server).await;
        let after = admitted(&loaded, [&nodes[0], &nodes[1]], &name).await;
        assert_eq!(before, QUOTA);
        assert!(after <= QUOTA, "{after} after a step of {off} ms");
    }
}

#[tokio::test]
async fn a_node_whose_clock_is_overridden_says_so_and_is_not_ready() {
    let clock = WallClock::new();
    let server = Server::start_by(Version::default(), &clock, &[]).await;
    clock.set(HALF_A_MINUTE * 4, &server).await;
    let text = redis(&server);
    let node = Node::new(&loaded("fixed_window", "window: 1h", &text), SkewedClock::default());
    node.store.started().await;
    let reason = node.store.check_clock().unwrap_err();
    assert!(reason.contains("shard a") && reason.contains("skew_max is 5s"), "{reason}");
    assert!(node.store.status()[0].clock_overridden);
    // If the policy lets the store's clock decide, a wrong clock changes nothing.
    let by_store = text.replace(PATIENT, &format!("{PATIENT}, clock: store"));
    let loaded = loaded("fixed_window", "window: 1h", &by_store);
    let node = Node::new(&loaded, SkewedClock::default());
    node.store.started().await;
    assert_eq!(node.store.check_clock(), Ok(()));
    assert!(node.store.status()[0].clock_overridden);
    clock.set(0, &server).await;
    let node =
        Node::new(&self::loaded("fixed_window", "window: 1h", &text), SkewedClock::default());
    node.store.started().await;
    let agreed = async {
        while node.store.check_clock().is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, agreed).await.expect("the clocks agree");
    assert!(!node.store.status()[0].clock_overridden);
}

#[tokio::test]
async fn a_clock_beyond_skew_max_switches_no_limit_in_memcached_off() {
    let server = crate::memcached_kit::Server::start();
    let store = format!("memcached: {{ servers: '{}', {PATIENT} }}", server.address());
    for (algorithm, rest) in LIMITS {
        let loaded = loaded(algorithm, rest, &store);
        for off in [HALF_A_MINUTE, -HALF_A_MINUTE, DAY, -DAY] {
            let wrong = SkewedClock::default();
            wrong.set(off);
            let nodes = [Node::new(&loaded, wrong), Node::new(&loaded, SkewedClock::default())];
            let name = format!("{algorithm} {off}");
            let admitted = admitted(&loaded, [&nodes[0], &nodes[1]], &name).await;
            assert_eq!(admitted, QUOTA, "{name} ms");
        }
    }
}
