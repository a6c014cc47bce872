//! Tests with networks that drop, buffer and delay bytes.

use std::collections::BTreeMap;

use super::kit::{Passage, Proxy, Server};
use super::tally::ran;
use super::*;

async fn behind_a_proxy(limits: LinkLimits) -> (Server, Proxy, Batcher<Tally>) {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port()).await;
    let batcher = ready_batcher(&proxy.url(), limits).await;
    (server, proxy, batcher)
}

/// Runs jobs with ids from 1 on until the circuit breaker is open.
async fn wait_in_vain(batcher: &Batcher<Tally>) {
    let mut id = 0;
    while batcher.circuit_state() != CircuitState::Open {
        id += 1;
        assert!(batcher.run_within("key", id, SHORT).await.is_err());
    }
}

#[tokio::test]
async fn a_half_open_connection_is_noticed_and_replaced() {
    let limits = LinkLimits { connect: Duration::from_millis(100), ..patient() };
    let (server, proxy, batcher) = behind_a_proxy(limits).await;
    proxy.requests(Passage::Lost);
    wait_in_vain(&batcher).await;
    assert_eq!(batcher.run("key", 100).await, Err(BatcherError::Unavailable));
    proxy.requests(Passage::Open);
    let first = batcher.recovers(1_000).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(first, 1)]));
}

#[tokio::test]
async fn what_a_partition_held_back_is_refused_when_it_heals() {
    let limits = LinkLimits { connect: Duration::from_millis(100), ..patient() };
    let (server, proxy, batcher) = behind_a_proxy(limits).await;
    proxy.requests(Passage::Held);
    wait_in_vain(&batcher).await;
    proxy.requests(Passage::Open);
    let first = batcher.recovers(1_000).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(first, 1)]));
}

#[tokio::test]
async fn a_lost_reply_is_an_unknown_outcome_and_not_sent_again() {
    let (server, proxy, batcher) = behind_a_proxy(patient()).await;
    proxy.replies(Passage::Cut);
    assert_eq!(batcher.run("key", 1).await, Err(BatcherError::Lost));
    proxy.replies(Passage::Open);
    let first = batcher.recovers(1_000).await;
    assert_eq!(ran(&server).await, BTreeMap::from([(1, 1), (first, 1)]));
}

#[tokio::test]
async fn an_answer_that_comes_late_is_charged_once_at_most() {
    let (server, proxy, batcher) = behind_a_proxy(patient()).await;
    proxy.replies(Passage::Held);
    assert_eq!(batcher.run_within("key", 1, SHORT).await, Err(BatcherError::TimedOut));
    proxy.replies(Passage::Open);
    let first = batcher.recovers(1_000).await;
    let ran = ran(&server).await;
    assert!(ran.values().all(|times| *times == 1), "{ran:?}");
    assert!(ran.contains_key(&first));
}

#[tokio::test]
async fn a_server_slower_than_the_deadline_is_not_put_into_service() {
    let server = Server::start().await;
    let proxy = Proxy::start(server.port()).await;
    proxy.replies(Passage::Slow(Duration::from_millis(200)));
    let limits = LinkLimits { proof: Duration::from_millis(15), ..patient() };
    let batcher = batcher_to(&[proxy.url()], limits);
    until(|| batcher.status().last_error.is_some()).await;
    let error = batcher.status().last_error.unwrap().to_string();
    assert!(error.contains("did not answer within 15 ms"), "{error}");
    assert_eq!(batcher.run("key", 1).await, Err(BatcherError::Unavailable));
}

#[tokio::test]
async fn a_heartbeat_finds_a_dead_network_before_any_caller_does() {
    let limits = LinkLimits {
        heartbeat: Duration::from_millis(10),
        heartbeat_answer: Duration::from_millis(50),
        connect: Duration::from_millis(50),
        ..patient()
    };
    let (_server, proxy, batcher) = behind_a_proxy(limits).await;
    proxy.requests(Passage::Lost);
    until(|| batcher.circuit_state() == CircuitState::Open).await;
    assert_eq!(batcher.run("key", 1).await, Err(BatcherError::Unavailable));
    assert_eq!(batcher.status().counts.calls, 0);
}
