//! Tests with servers that answer with the error that they cannot serve.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;

use super::kit::Server;
use super::tally::{count, ran};
use super::*;

async fn send(connection: &mut MultiplexedConnection, command: &[&str]) {
    redis::cmd(command[0]).arg(&command[1..]).exec_async(connection).await.unwrap();
}

#[tokio::test]
async fn when_the_primary_changes_every_job_is_still_decided_once() {
    let quick = ["--repl-diskless-sync-delay", "0"];
    let (old, new) = (Server::start_with(&quick).await, Server::start_with(&quick).await);
    new.follow(&old).await;
    let limits = LinkLimits { proven_after: Duration::ZERO, ..patient() };
    let batcher = batcher_to(&[old.url(), new.url()], limits);
    for id in 0..50 {
        assert!(batcher.run("key", id).await.is_ok());
    }
    // Operators either promote the new primary first and then demote the old primary, or use the
    // reverse order. In this test, the new primary exists before the old primary is demoted.
    let mut connection = new.connect().await;
    in_time(async {
        while count(&new, "key").await < 50 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    send(&mut connection, &["REPLICAOF", "NO", "ONE"]).await;
    let mut connection = old.connect().await;
    send(&mut connection, &["REPLICAOF", "127.0.0.1", &new.port().to_string()]).await;

    for id in 50..100 {
        let answer = batcher.run("key", id).await;
        assert_eq!(answer, Ok(i64::try_from(id).unwrap() + 1), "job {id}");
    }
    assert_eq!(batcher.status().address, Some(new.url()));
    assert_eq!(ran(&new).await, (0..100).map(|id| (id, 1)).collect::<BTreeMap<_, _>>());
}

#[tokio::test]
async fn a_replica_is_no_primary() {
    let (leader, follower) = (Server::start().await, Server::start().await);
    follower.follow(&leader).await;
    let batcher = batcher_to(&[follower.url()], patient());
    until(|| batcher.circuit_state() == CircuitState::Open).await;
    assert_eq!(batcher.run("key", 1).await, Err(BatcherError::Unavailable));
    let error = batcher.status().last_error.unwrap().to_string();
    assert!(error.contains("is a replica, but a primary is needed"), "{error}");
}

#[tokio::test]
async fn a_server_that_loads_is_not_waited_for() {
    let mut server = Server::start_with(&["--enable-debug-command", "yes"]).await;
    let mut connection = server.connect().await;
    send(&mut connection, &["DEBUG", "POPULATE", "20000"]).await;
    send(&mut connection, &["SAVE"]).await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    server.kill();
    until(|| batcher.circuit_state() == CircuitState::Open).await;

    let slow = ["--key-load-delay", "100", "--loading-process-events-interval-bytes", "1024"];
    server.start_again(&slow);
    until(|| {
        let error = batcher.status().last_error.map(|error| error.to_string());
        error.is_some_and(|error| error.contains("LOADING"))
    })
    .await;
    assert_eq!(batcher.run("key", 1).await, Err(BatcherError::Unavailable));
    let first = batcher.recovers(1_000).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(first, 1)]));
}

#[tokio::test]
async fn a_forgotten_script_is_loaded_again_by_the_way() {
    let server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    let mut connection = server.connect().await;
    for id in 0..200 {
        send(&mut connection, &["SCRIPT", "FLUSH"]).await;
        assert_eq!(batcher.run("key", id).await, Ok(i64::try_from(id).unwrap() + 1));
    }
    assert_eq!(batcher.status().opened, 0);
}

#[tokio::test]
async fn a_refusal_of_the_server_is_reported_and_not_repeated() {
    let server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    let mut connection = server.connect().await;
    send(&mut connection, &["SET", "ran", "no hash"]).await;
    // The step increments the key before the step fails. The batcher cannot detect this increment,
    // so it must not send the job again.
    let answer = batcher.run("key", 1).await;
    assert!(matches!(answer, Err(BatcherError::Refused(_))), "{answer:?}");
    assert_eq!(count(&server, "key").await, 1);
    assert_eq!(batcher.circuit_state(), CircuitState::Closed);
}
