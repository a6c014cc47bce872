//! Servers that are reachable but do not answer.

use super::*;

in_every_way! {
    a_server_that_thaws_charges_nothing_that_was_given_up
    a_pause_of_writes_charges_nothing_late
}

/// Sends calls, which fail, until the circuit breaker is open.
async fn wait_in_vain(client: &Client) {
    while client.circuit_state() != CircuitState::Open {
        let results = client.take_within(0, 1, SHORT).await;
        let promised = [BatcherError::TimedOut, BatcherError::Lost, BatcherError::Unavailable];
        assert!(results.as_ref().is_err_and(|error| promised.contains(error)), "{results:?}");
    }
    for _ in 0..100 {
        assert_eq!(client.take(0, 1).await, Err(BatcherError::Unavailable));
    }
}

async fn a_server_that_thaws_charges_nothing_that_was_given_up(way: Way) {
    let Site { server, client, .. } = &Site::start(way, 100).await;
    assert_eq!(client.take(0, 1).await.unwrap().used, 1);
    server.freeze();
    wait_in_vain(client).await;
    server.thaw();
    client.store.ready(PATIENCE).await.unwrap();
    assert_eq!(client.take(0, 1).await.unwrap().used, 2);
    client.assert_sound();
}

async fn a_pause_of_writes_charges_nothing_late(way: Way) {
    let Site { server, client, .. } = &Site::start(way, 100).await;
    assert_eq!(client.take(0, 1).await.unwrap().used, 1);
    server.execute(&["CLIENT", "PAUSE", "100000", "WRITE"]).await;
    wait_in_vain(client).await;
    server.execute(&["CLIENT", "UNPAUSE"]).await;
    client.store.ready(PATIENCE).await.unwrap();
    assert_eq!(client.take(0, 1).await.unwrap().used, 2);
    client.assert_sound();
}
