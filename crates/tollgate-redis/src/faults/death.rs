//! Servers that die.

use std::collections::BTreeMap;

use super::kit::Server;
use super::tally::ran;
use super::*;

#[tokio::test]
async fn a_killed_server_is_informed_of_at_once_and_found_again() {
    let mut server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    assert_eq!(batcher.run("key", 0).await, Ok(1));

    server.kill();
    until(|| batcher.circuit_state() == CircuitState::Open).await;
    for id in 1..=100 {
        assert_eq!(batcher.run("key", id).await, Err(BatcherError::Unavailable));
    }
    until(|| {
        let error = batcher.status().last_error.map(|error| error.to_string());
        error.is_some_and(|error| error.contains("cannot be reached"))
    })
    .await;

    server.start_again(&[]);
    let first = batcher.recovers(1_000).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(first, 1)]));
    assert_eq!(batcher.circuit_state(), CircuitState::Closed);
}

#[tokio::test]
async fn a_call_that_was_under_way_is_not_sent_again() {
    let mut server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    server.freeze();
    let under_way = async { batcher.run("key", 1).await };
    let death = async {
        until(|| batcher.status().counts.calls == 1).await;
        server.kill();
        server.start_again(&[]);
    };
    let (answer, ()) = tokio::join!(under_way, death);
    assert_eq!(answer, Err(BatcherError::Lost));
    let first = batcher.recovers(1_000).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(first, 1)]));
}

#[tokio::test]
async fn jobs_wait_for_the_first_attempt_at_another_connection() {
    let server = Server::start().await;
    let limits = LinkLimits { proven_after: Duration::ZERO, ..patient() };
    let batcher = ready_batcher(&server.url(), limits).await;
    for id in 0..20 {
        let mut connection = server.connect().await;
        let kill: redis::RedisResult<i64> = redis::cmd("CLIENT")
            .arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"])
            .query_async(&mut connection)
            .await;
        assert!(kill.is_ok());
        until(|| batcher.link().circuit().progress().generation() > id + 1).await;
        assert_eq!(batcher.run("key", id).await, Ok(i64::try_from(id).unwrap() + 1));
    }
    assert_eq!(batcher.status().opened, 0);
}

#[tokio::test]
async fn a_server_that_is_not_there_yet_is_waited_for_by_nobody() {
    let mut server = Server::start().await;
    server.kill();
    let batcher = batcher_to(&[server.url()], patient());
    until(|| batcher.circuit_state() == CircuitState::Open).await;
    assert_eq!(batcher.run("key", 1).await, Err(BatcherError::Unavailable));
    server.start_again(&[]);
    in_time(batcher.link().up()).await;
    assert_eq!(batcher.run("key", 2).await, Ok(1));
}
