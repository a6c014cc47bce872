//! The units that nodes admit during an outage. The tests check how many of these units remain
//! admitted beyond the limits after the outage.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tollgate::model::key::Subject;
use tollgate::model::{
    Charge, ChargeId, Cost, DecisionSource, Limit, Operation, Readings, Store, Value,
};
use tollgate::{Clock, SystemClock};
use tollgate_backend::Backend;
use tollgate_policy::{LoadedPolicy, parse};

use crate::kit::{QUICK, Server};
use crate::redis::fleet::{PATIENT, key, open};
use crate::redis::pairs::served;

/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(1);
const QUOTA: u64 = 40;
const SUBJECTS: u64 = 20;
/// The number of units of one subject that each node charges before the outage. `DURING` is the
/// number of units that each node tries to charge during the outage.
const BEFORE: u64 = 4;
const DURING: u64 = 9;
/// The most units that all limits of one shard together may admit beyond their quotas.
const BEYOND_MAX: u64 = 64;

/// The limits of the test: one limit of every algorithm that counts units in a window.
const LIMITS: &str = "\
    fixed:   { quota: 40, window: 1h, per: token }\n  \
    sliding: { quota: 40, window: 1h, per: token, algorithm: sliding_window, precision: 10m }\n  \
    two:     { quota: 40, window: 1h, per: token, algorithm: two_bucket }\n  \
    log:     { quota: 40, window: 1h, per: token, algorithm: sliding_log }\n  \
    bucket:  { quota: 40, window: 1h, per: token, algorithm: token_bucket, burst: 40 }\n";

fn loaded(primary: &Server, replica: &Server) -> LoadedPolicy {
    let [primary, replica] = [primary, replica].map(Server::url);
    let text = format!(
        "subjects: {{ token: {{ header: authorization }} }}\n\
         limits:\n  {LIMITS}\
         rules: [{{ limits: [fixed, sliding, two, log, bucket] }}]\n\
         store: {{ redis: {{ {PATIENT}, nodes: 2, deny_cache: false, \
         shards: {{ a: {{ primary: \"{primary}\", replicas: \"{replica}\" }} }} }} }}\n",
    );
    parse("test.yaml", &text).unwrap()
}

async fn charge(node: &Backend, limit: &Limit, number: u64) -> Readings {
    let subject = Subject::new([("token", Value::Clear(&number.to_be_bytes()))], &key());
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let charge = Charge { limit, subject: &subject, operation };
    timeout(PATIENCE, node.apply(SystemClock.now(), &[charge])).await.unwrap().unwrap()
}

/// Charges one unit at a time until the store answers. Returns whether the store admitted the last
/// unit, and the number of units that the node's fallback admitted until then.
async fn charge_at_store(node: &Backend, limit: &Limit, number: u64) -> (bool, u64) {
    let mut fallback = 0;
    let answered = async {
        loop {
            let readings = charge(node, limit, number).await;
            if readings.source() == DecisionSource::Store {
                break readings.all_admitted();
            }
            fallback += u64::from(readings.all_admitted());
            sleep(PAUSE).await;
        }
    };
    let admitted = timeout(PATIENCE, answered).await.expect("the store answers");
    (admitted, fallback)
}

/// If the shard were not charged for locally admitted units, an outage would admit 233 to 1,700
/// units of a shard beyond the limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_admits_at_most_64_units_of_a_shard_beyond_the_limits() {
    let mut primary = Server::start_with(&QUICK).await;
    let replica = Server::start_with(&QUICK).await;
    let (_, port) =
        primary.url().rsplit_once(':').map(|(at, port)| (at.to_owned(), port.to_owned())).unwrap();
    replica.execute(&["REPLICAOF", "127.0.0.1", &port]).await;
    primary.is_followed().await;
    let loaded = loaded(&primary, &replica);
    let nodes = [open(&loaded), open(&loaded)];
    for node in &nodes {
        served(node).await;
    }
    let limits: Vec<_> = loaded.policy.limits().iter().map(|limit| &*limit.limit).collect();
    let places =
        || limits.iter().flat_map(|limit| (0..SUBJECTS).map(move |number| (*limit, number)));
    let mut admitted = vec![0; places().count()];
    for node in nodes.iter().cycle().take(2 * BEFORE as usize) {
        for ((limit, number), admitted) in places().zip(&mut admitted) {
            let (is_admitted, fallback) = charge_at_store(node, limit, number).await;
            *admitted += u64::from(is_admitted) + fallback;
        }
    }
    // Units of writes that the replica lacks would be admitted again. This test excludes such
    // units.
    primary.is_followed().await;
    primary.kill();
    let mut fallback = 0;
    for node in nodes.iter().cycle().take(2 * DURING as usize) {
        for ((limit, number), admitted) in places().zip(&mut admitted) {
            let readings = charge(node, limit, number).await;
            assert!(matches!(readings.source(), DecisionSource::Fallback(_)), "{readings:?}");
            *admitted += u64::from(readings.all_admitted());
            fallback += u64::from(readings.all_admitted());
        }
    }
    assert!(fallback > 10 * BEYOND_MAX, "{fallback} units were admitted by nodes alone");
    replica.promote().await;
    for node in nodes.iter().cycle().take(2 * QUOTA as usize) {
        for ((limit, number), admitted) in places().zip(&mut admitted) {
            let (is_admitted, fallback) = charge_at_store(node, limit, number).await;
            *admitted += u64::from(is_admitted) + fallback;
        }
    }
    let beyond: u64 = admitted.iter().map(|units: &u64| units.saturating_sub(QUOTA)).sum();
    let unused: u64 = admitted.iter().map(|units| QUOTA.saturating_sub(*units)).sum();
    println!(
        "{fallback} units admitted by nodes alone, {beyond} beyond the limits, {unused} unused"
    );
    assert!(beyond <= BEYOND_MAX, "{beyond} units beyond the limits");
    assert!(unused <= BEYOND_MAX, "{unused} units were charged twice");
    for node in &nodes {
        let Backend::Redis(fleet) = node else { panic!("{node:?}") };
        let counts = fleet.counts().local_charges;
        assert!(counts.charged > 0, "{counts:?}");
        assert_eq!((counts.unknown, counts.dropped), (0, 0), "{counts:?}");
    }
    replica.assert_every_key_ends().await;
}
