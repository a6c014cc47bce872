//! Servers that are far away, and networks that delay packets.

use tokio::time::{Instant, sleep_until};
use tollgate_core::{Charge, ChargeId, Cost, Operation, Subject, Value};
use tollgate_redis::{Keys, LinkLimits, RedisShard, RuntimeChoice, ShardSettings};

use super::*;
use crate::kit::{Latency, LatencyProxy};

/// How the decisions of one run were made.
struct Tally {
    decided: usize,
    undecided: usize,
}

/// Makes `decisions`, one every `pause` whether the others are decided or not, on a store behind
/// `latency` in which each may take as long as `deadline`.
async fn decide(latency: Latency, deadline: Duration, decisions: u64, pause: Duration) -> Tally {
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
    let (mut callers, start) = (JoinSet::new(), Instant::now());
    for number in 0..u32::try_from(decisions).unwrap() {
        let client = Arc::clone(&client);
        callers.spawn(async move {
            sleep_until(start + pause * number).await;
            client.take_within(u64::from(number), 1, deadline).await.is_ok()
        });
    }
    let told = callers.join_all().await;
    client.assert_sound();
    let decided = told.iter().filter(|is_decided| **is_decided).count();
    Tally { decided, undecided: told.len() - decided }
}

/// A connection carried one call at a time, so that a decision waited for up to two round trips.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_trip_of_more_than_half_the_deadline_costs_no_decision() {
    let one_way = Duration::from_millis(500);
    let latency = Latency { one_way, stall_every: 0, stall: Duration::ZERO };
    let told = decide(latency, Duration::from_millis(1_750), 600, Duration::from_millis(5)).await;
    assert_eq!((told.decided, told.undecided), (600, 0));
}

/// A delayed reply delayed all that came after it, and closed the way to the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stall_of_one_reply_in_a_hundred_costs_at_most_three_decisions_in_a_hundred() {
    let stall = Duration::from_secs(20);
    let latency = Latency { one_way: Duration::from_millis(1), stall_every: 100, stall };
    let told = decide(latency, Duration::from_secs(3), 2_000, Duration::from_millis(5)).await;
    assert!(told.undecided > 0, "no reply was delayed");
    assert!(told.undecided * 100 <= 3 * 2_000, "{} of 2,000", told.undecided);
}
