//! Kills nodes between a reservation and its settlement. No unit is lost.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::kit::Server;
use redis::Client;
use tollgate_conformance::PlainHash;
use tollgate_core::algo::{Anchor, Concurrency, FixedWindow, SlidingWindow};
use tollgate_core::{
    Algorithm, Charge, ChargeId, ChargePosition, Cost, Limit, Millis, OnExpiry, Operation, Reading,
    ReservationTerms, Store, Subject, Timestamp, Value,
};
use tollgate_redis::{Keys, Redis, RuntimeChoice};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
/// The time for which each node reserves units. The time is shorter than every window.
const HOLD: Millis = Millis::from_secs(30);
/// The number of nodes that are killed.
const NODES: u128 = 100;

/// The environment variable with the server's URL, for a node that this test starts. `NODE` is the
/// variable with the node's number.
const SERVER: &str = "TOLLGATE_TEST_SERVER";
const NODE: &str = "TOLLGATE_TEST_NODE";
/// The line that a node prints after its reservation.
const RESERVED: &str = "reserved";

/// Returns two limits that release expired reservations, one limit that charges expired
/// reservations, and one limit with permits. Each limit is large enough for all nodes.
fn limits() -> Vec<Limit> {
    let window = Millis::from_secs(3_600);
    let fixed = FixedWindow::new(1_000, window, Anchor::FirstRequest).unwrap();
    let sliding = SlidingWindow::new(1_000, window, Millis::from_secs(60)).unwrap();
    let leases = Concurrency::new(1_000, HOLD).unwrap();
    let charges = ReservationTerms { on_expiry: OnExpiry::Charge, ..ReservationTerms::default() };
    let limit = |name, algorithm| {
        // The state must not expire on a slow machine.
        Limit::new(name, algorithm).unwrap().with_skew_max(Millis::from_secs(600))
    };
    vec![
        limit("fixed", Algorithm::FixedWindow(fixed)),
        limit("sliding", Algorithm::SlidingWindow(sliding)),
        limit("charged", Algorithm::FixedWindow(fixed)).with_reservation_terms(charges).unwrap(),
        limit("leases", Algorithm::Concurrency(leases)),
    ]
}

async fn apply_one(store: &Redis, now: Timestamp, operation: Operation) -> Vec<Reading> {
    let subject = Subject::new([("name", Value::Clear(b"everybody"))], &PlainHash);
    let limits = limits();
    let charges: Vec<_> =
        limits.iter().map(|limit| Charge { limit, subject: &subject, operation }).collect();
    store.apply(now, &charges).await.unwrap().to_vec()
}

/// Acts as a node if the test started this program as a node. In every other case, the test does
/// nothing.
#[tokio::test]
async fn a_node_that_is_killed() {
    let (Ok(server), Ok(node)) = (std::env::var(SERVER), std::env::var(NODE)) else { return };
    let connection = Client::open(server).unwrap().get_multiplexed_async_connection().await;
    let store =
        Redis::new(connection.unwrap(), Keys::new(PlainHash), RuntimeChoice::Best).await.unwrap();
    let id = ChargeId(node.parse().unwrap());
    let reserve = Operation::Reserve { cost: Cost::up_to(3), id, until: NOW.after(HOLD) };
    let reserved = apply_one(&store, NOW, reserve).await;
    assert!(reserved.iter().all(|reading| reading.used > 0));
    println!("{RESERVED}");
    // Wait to be killed.
    std::future::pending::<()>().await;
}

fn start(server: &str, node: u128) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new(program)
        .args(["killed::a_node_that_is_killed", "--exact", "--nocapture"])
        .envs([(SERVER, server), (NODE, &node.to_string())])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn nodes_killed_between_reservation_and_settlement_leak_nothing() {
    let server = Server::start().await;
    let address = format!("redis://127.0.0.1:{}", server.port());
    for node in 0..NODES {
        let mut child = start(&address, node);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reserved = lines.map_while(Result::ok).any(|line| line.ends_with(RESERVED));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(reserved, "node {node} ended by itself");
    }
    let store = Redis::new(server.connect().await, Keys::new(PlainHash), RuntimeChoice::Best).await;
    let store = store.unwrap();
    let outcomes = |readings: Vec<Reading>| {
        readings.into_iter().map(|reading| (reading.used, reading.reserved)).collect::<Vec<_>>()
    };
    let look = Operation::Peek { cost: Cost::PEEK };
    let last = Timestamp::from_millis(NOW.after(HOLD).as_millis() - 1);
    let all = [(300, 300), (300, 300), (300, 300), (300, 0)];
    assert_eq!(outcomes(apply_one(&store, last, look).await), all);
    // Another node that has the receipt may settle the reservation of a dead node.
    let settle = |id| Operation::Settle {
        id: ChargeId(id),
        position: ChargePosition::default(),
        cost: Cost::up_to(1),
    };
    for id in 0..10 {
        apply_one(&store, last, settle(id)).await;
    }
    let over = [(10, 0), (10, 0), (280, 0), (0, 0)];
    assert_eq!(
        outcomes(apply_one(&store, NOW.after(HOLD), look).await),
        over,
        "gone in that millisecond"
    );
    let whole = Operation::Charge { cost: Cost::up_to(720), id: ChargeId(u128::MAX) };
    let taken = apply_one(&store, NOW.after(HOLD), whole).await;
    assert_eq!(outcomes(taken), [(730, 0), (730, 0), (1_000, 0), (720, 0)]);
    server.assert_every_key_ends().await;
}
