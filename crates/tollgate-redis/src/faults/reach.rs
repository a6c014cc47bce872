//! Tests of the ways to reach a server: sockets, users and protocols. Also tests of the estimate of
//! the server's clock.

use redis::FromRedisValue;

use super::kit::Server;
use super::*;
use crate::connection::{Credentials, SecretSource};
use crate::shard::{PrimaryChoice, Shard, ShardSettings};

#[tokio::test]
async fn every_protocol_and_socket_reaches_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("redis.sock").display().to_string();
    let server = Server::start_with(&["--unixsocket", &socket]).await;
    let urls = [
        server.url(),
        format!("{}/3", server.url()),
        format!("{}?protocol=3", server.url()),
        format!("redis://localhost:{}", server.port()),
        format!("unix://{socket}?protocol=3&db=4"),
    ];
    for url in urls {
        let batcher = ready_batcher(&url, patient()).await;
        assert!(batcher.run("key", 1).await.is_ok(), "{url}");
    }
}

#[tokio::test]
async fn a_user_and_a_password_from_a_file_are_used_again_for_each_connection() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    let server = Server::start().await;
    redis::cmd("ACL")
        .arg(&["SETUSER", "tollgate", "on", ">right", "~*", "+@all"])
        .exec_async(&mut server.connect().await)
        .await
        .unwrap();
    let endpoint = server.url().parse::<Endpoint>().unwrap().with_credentials(Credentials {
        user: Some("tollgate".into()),
        password: Some(SecretSource::File(file.clone())),
    });
    std::fs::write(&file, "wrong\n").unwrap();
    let limits = BatcherLimits::default();
    let batcher =
        Batcher::start(vec![endpoint], RequiredRole::Primary, Tally::arc(), limits, patient());
    until(|| batcher.status().last_error.is_some()).await;
    let error = batcher.status().last_error.unwrap();
    assert!(!format!("{error} {error:?}").contains("wrong"), "{error:?}");

    std::fs::write(&file, "right\n").unwrap();
    in_time(batcher.link().up()).await;
    assert_eq!(batcher.run("key", 1).await, Ok(1));
}

#[tokio::test]
async fn the_clock_of_the_server_is_known_within_its_bounds() {
    let server = Server::start().await;
    let batcher = ready_batcher(&server.url(), patient()).await;
    for id in 0..50 {
        assert!(batcher.run("key", id).await.is_ok());
    }
    let mut connection = server.connect().await;
    let before = Instant::now();
    let reply = redis::cmd("TIME").query_async(&mut connection).await.unwrap();
    let after = Instant::now();
    let (secs, micros) = <(u64, u64)>::from_redis_value(reply).unwrap();
    let server_time = tollgate_core::Timestamp::from_millis(secs * 1_000 + micros / 1_000);

    let clock = batcher.link().clock();
    let ahead = clock.ahead_of(server_time, before).unwrap();
    // The server read its clock after `before`. So at `before`, the server's clock showed at most
    // the time that the server returned.
    assert!(ahead.millis <= ahead.uncertainty.cast_signed(), "{ahead:?}");
    let ahead = clock.ahead_of(server_time, after).unwrap();
    assert!(ahead.millis >= -ahead.uncertainty.cast_signed() - 1, "{ahead:?}");
    assert_eq!(batcher.status().clock_steps, 0);
}

#[tokio::test]
async fn a_shard_reads_from_the_replicas_that_follow() {
    let primary = Server::start_with(&["--repl-diskless-sync-delay", "0"]).await;
    let (follower, mut other) = (Server::start().await, Server::start().await);
    let mut connection = follower.connect().await;
    redis::cmd("REPLICAOF")
        .arg("127.0.0.1")
        .arg(primary.port())
        .exec_async(&mut connection)
        .await
        .unwrap();
    other.kill();
    let mut settings = ShardSettings::replicated(
        primary.url().parse().unwrap(),
        vec![other.url().parse().unwrap(), follower.url().parse().unwrap()],
    );
    settings.link = patient();
    let shard = Shard::open(&settings, Tally, |_| Tally, PrimaryChoice::ByMark);
    shard.ready(PATIENCE).await.unwrap();
    assert!(shard.primary().run("key", 1).await.is_ok());
    until(|| shard.replica().is_some()).await;
    for _ in 0..5 {
        let replica = shard.replica().unwrap();
        assert_eq!(replica.status().address, Some(follower.url()));
    }
    let gates: Vec<_> = shard.status().iter().map(|batcher| batcher.circuit_state).collect();
    assert_eq!(gates, [CircuitState::Closed, CircuitState::Open, CircuitState::Closed]);
}
