//! Servers that are far away, and networks that delay packets.

use tokio::time::{Instant, sleep_until};
use tollgate_redis::{Keys, LinkLimits, RedisShard, RuntimeChoice, ShardSettings};

use super::*;
use crate::kit::{Latency, LatencyProxy};

/// The numbers of decided and undecided calls of one run.
struct Tally {
    decided: usize,
    undecided: usize,
}

/// Whether the server accepts more connections than the nodes open at the start.
#[derive(Clone, Copy, PartialEq)]
enum Connections {
    Accepted,
    Refused,
}

/// Makes `decisions` decisions on a store behind a network with `latency`. Starts one decision
/// every `pause`, each with the deadline `deadline`. No decision waits for another decision.
async fn decide(
    latency: Latency,
    deadline: Duration,
    decisions: u64,
    pause: Duration,
    connections: Connections,
) -> Tally {
    let server = Server::start().await;
    let network = LatencyProxy::start(server.port(), latency);
    let settings = ShardSettings {
        link: LinkLimits { connect: PATIENCE, ..LinkLimits::for_deadline(deadline) },
        ..ShardSettings::new(network.url().parse().unwrap())
    };
    let keys = Keys::new(tollgate_conformance::PlainHash);
    let store = RedisShard::open(&settings, keys, RuntimeChoice::Best);
    store.ready(PATIENCE).await.unwrap();
    let client = Client::on(store, decisions + 1);
    client.take_within(0, 1, PATIENCE).await.unwrap();
    if connections == Connections::Refused {
        server.execute(&["CONFIG", "SET", "maxclients", "1"]).await;
    }
    let (mut callers, start) = (JoinSet::new(), Instant::now());
    for number in 0..u32::try_from(decisions).unwrap() {
        let client = Arc::clone(&client);
        callers.spawn(async move {
            sleep_until(start + pause * number).await;
            client.take_within(u64::from(number), 1, deadline).await.is_ok()
        });
    }
    let outcomes = callers.join_all().await;
    client.assert_sound();
    let decided = outcomes.iter().filter(|is_decided| **is_decided).count();
    Tally { decided, undecided: outcomes.len() - decided }
}

const RATE: Duration = Duration::from_millis(5);

/// With only one call in flight on a connection, a decision would wait for up to two round trips.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_trip_of_more_than_half_the_deadline_costs_no_decision() {
    let one_way = Duration::from_millis(500);
    let latency = Latency { one_way, stall_every: 0, stall: Duration::ZERO };
    let deadline = Duration::from_millis(1_750);
    let tally = decide(latency, deadline, 600, RATE, Connections::Accepted).await;
    assert_eq!((tally.decided, tally.undecided), (600, 0));
}

/// Without additional connections, the calls in flight share the first connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_additional_connections_costs_no_decision() {
    let one_way = Duration::from_millis(500);
    let latency = Latency { one_way, stall_every: 0, stall: Duration::ZERO };
    let deadline = Duration::from_millis(1_750);
    let tally = decide(latency, deadline, 600, RATE, Connections::Refused).await;
    assert_eq!((tally.decided, tally.undecided), (600, 0));
}

/// On a single connection, a delayed reply would delay all later replies and open the circuit
/// breaker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stall_of_one_reply_in_a_hundred_costs_at_most_three_decisions_in_a_hundred() {
    let stall = Duration::from_secs(20);
    let latency = Latency { one_way: Duration::from_millis(1), stall_every: 100, stall };
    let deadline = Duration::from_secs(3);
    let tally = decide(latency, deadline, 2_000, RATE, Connections::Accepted).await;
    assert!(tally.undecided > 0, "no reply was delayed");
    assert!(tally.undecided * 100 <= 3 * 2_000, "{} of 2,000", tally.undecided);
}
