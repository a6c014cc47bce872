//! Servers that are reachable but do not answer.

use std::collections::BTreeMap;

use tokio::task::JoinSet;

use super::kit::Server;
use super::tally::ran;
use super::*;

/// Runs jobs with ids from 1 on until the circuit breaker is open. Returns the number of jobs that
/// were sent and got no answer.
async fn wait_in_vain(batcher: &Batcher<Tally>) -> u64 {
    let mut waited = 0;
    while batcher.circuit_state() != CircuitState::Open {
        waited += 1;
        let answer = batcher.run_within("key", waited, SHORT).await;
        assert!(
            matches!(
                answer,
                Err(BatcherError::TimedOut | BatcherError::Lost | BatcherError::Unavailable)
            ),
            "{answer:?}"
        );
    }
    waited
}

#[tokio::test]
async fn work_given_up_is_refused_by_a_server_that_thaws() {
    let server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    assert_eq!(batcher.run("key", 0).await, Ok(1));

    server.freeze();
    let waited = wait_in_vain(&batcher).await;
    assert!(waited <= u64::from(patient().misses), "{waited} callers waited in vain");
    for id in 100..200 {
        assert_eq!(batcher.run("key", id).await, Err(BatcherError::Unavailable));
    }
    server.thaw();
    let first = batcher.recovers(1_000).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(0, 1), (first, 1)]));
}

#[tokio::test]
async fn a_pause_of_clients_charges_nothing_late() {
    let server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    let mut other = server.connect().await;
    redis::cmd("CLIENT").arg(&["PAUSE", "300", "ALL"]).exec_async(&mut other).await.unwrap();
    wait_in_vain(&batcher).await;
    let first = batcher.recovers(1_000).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(first, 1)]));
}

#[tokio::test]
async fn one_probe_at_a_time_is_under_way() {
    let server = Server::start().await;
    let limits = LinkLimits { connect: Duration::from_millis(20), ..patient() };
    let batcher = ready_batcher(&server.url(), limits).await;
    server.freeze();
    wait_in_vain(&batcher).await;
    sleep(Duration::from_millis(300)).await;
    server.thaw();
    batcher.recovers(1_000).await;
    // Old connections are closed. Only the batcher's connection and the test's own connection
    // remain.
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
    let limits = BatcherLimits { waiting: 1_000, ..BatcherLimits::default() };
    let endpoint = server.url().parse().unwrap();
    let batcher =
        Batcher::start(vec![endpoint], RequiredRole::Primary, Tally::arc(), limits, patient());
    let batcher = std::sync::Arc::new(batcher);
    in_time(batcher.link().up()).await;

    server.freeze();
    let mut callers = JoinSet::new();
    for id in 0..CALLERS {
        let batcher = std::sync::Arc::clone(&batcher);
        callers.spawn(async move { batcher.run_within("key", id, SHORT).await });
    }
    let mut answers = [0; 3];
    while let Some(answer) = in_time(callers.join_next()).await {
        match answer.unwrap() {
            Err(BatcherError::Overloaded) => answers[0] += 1,
            Err(BatcherError::Unavailable) => answers[1] += 1,
            Err(BatcherError::TimedOut | BatcherError::Lost) => answers[2] += 1,
            other => panic!("a frozen server decided: {other:?}"),
        }
    }
    assert_eq!(answers.iter().sum::<u64>(), CALLERS);
    assert!(answers[0] > 0, "the batcher held more than it may: {answers:?}");
    server.thaw();
    let first = batcher.recovers(CALLERS).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(first, 1)]));
}
