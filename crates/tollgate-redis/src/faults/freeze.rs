//! Servers that are there and do not answer.

use std::collections::BTreeMap;

use tokio::task::JoinSet;

use super::kit::Server;
use super::tally::ran;
use super::*;

/// Runs jobs with ids from 1 on the lane until nobody waits for the server any more; returns how
/// many were sent in vain.
async fn wait_in_vain(lane: &Lane<Tally>) -> u64 {
    let mut waited = 0;
    while lane.gate() != Gate::Open {
        waited += 1;
        let answer = lane.run_within("key", waited, SHORT).await;
        assert!(
            matches!(answer, Err(LaneError::TimedOut | LaneError::Lost | LaneError::Unavailable)),
            "{answer:?}"
        );
    }
    waited
}

#[tokio::test]
async fn work_given_up_is_refused_by_a_server_that_thaws() {
    let server = Server::start().await;
    let lane = ready_lane(&server.url(), patient()).await;
    assert_eq!(lane.run("key", 0).await, Ok(1));

    server.freeze();
    let waited = wait_in_vain(&lane).await;
    assert!(waited <= u64::from(patient().misses), "{waited} callers waited in vain");
    for id in 100..200 {
        assert_eq!(lane.run("key", id).await, Err(LaneError::Unavailable));
    }
    server.thaw();
    let first = lane.recovers(1_000).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(0, 1), (first, 1)]));
}

#[tokio::test]
async fn a_pause_of_clients_charges_nothing_late() {
    let server = Server::start().await;
    let lane = ready_lane(&server.url(), patient()).await;
    let mut other = server.connect().await;
    redis::cmd("CLIENT").arg(&["PAUSE", "300", "ALL"]).exec_async(&mut other).await.unwrap();
    wait_in_vain(&lane).await;
    let first = lane.recovers(1_000).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(first, 1)]));
}

#[tokio::test]
async fn one_probe_at_a_time_is_under_way() {
    let server = Server::start().await;
    let limits = LinkLimits { connect: Duration::from_millis(20), ..patient() };
    let lane = ready_lane(&server.url(), limits).await;
    server.freeze();
    wait_in_vain(&lane).await;
    sleep(Duration::from_millis(300)).await;
    server.thaw();
    lane.recovers(1_000).await;
    // What was left behind is closed: this lane's connection and this test's are all.
    let mut other = server.connect().await;
    in_time(async {
        loop {
            let clients: String =
                redis::cmd("CLIENT").arg("LIST").query_async(&mut other).await.unwrap();
            if clients.lines().count() == 2 {
                break;
            }
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn fifty_thousand_callers_of_a_frozen_server_are_all_answered() {
    const CALLERS: u64 = 50_000;
    let server = Server::start().await;
    let limits = LaneLimits { waiting: 1_000, ..LaneLimits::default() };
    let endpoint = server.url().parse().unwrap();
    let lane = Lane::start(vec![endpoint], Duty::Primary, Tally::arc(), limits, patient());
    let lane = std::sync::Arc::new(lane);
    in_time(lane.link().up()).await;

    server.freeze();
    let mut callers = JoinSet::new();
    for id in 0..CALLERS {
        let lane = std::sync::Arc::clone(&lane);
        callers.spawn(async move { lane.run_within("key", id, SHORT).await });
    }
    let mut answers = [0; 3];
    while let Some(answer) = in_time(callers.join_next()).await {
        match answer.unwrap() {
            Err(LaneError::Overloaded) => answers[0] += 1,
            Err(LaneError::Unavailable) => answers[1] += 1,
            Err(LaneError::TimedOut | LaneError::Lost) => answers[2] += 1,
            other => panic!("a frozen server decided: {other:?}"),
        }
    }
    assert_eq!(answers.iter().sum::<u64>(), CALLERS);
    assert!(answers[0] > 0, "the lane held more than it may: {answers:?}");
    server.thaw();
    let first = lane.recovers(CALLERS).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(first, 1)]));
}
