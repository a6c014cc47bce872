//! Keys that another program overwrites.

use tollgate_conformance::{Figure, assert_held};

use super::*;

in_every_way_of_keys! {
    keys_of_another_type_are_no_state_and_no_error
}

/// Each key that another program overwrote starts one window again, without any other effect.
async fn keys_of_another_type_are_no_state_and_no_error(way: Way) {
    const QUOTA: u64 = 5;
    let Site { server, client, .. } = &Site::start(way, QUOTA).await;
    let (connection, key) = (server.connect().await, &client.key(0));
    let (results, times) = calls_during(client, |time| {
        let mut connection = connection.clone();
        async move {
            let _losing = client.recorder.begin_loss();
            let mut foreign = redis::pipe();
            foreign.atomic().del(key);
            match time % 4 {
                0 => foreign.hset(key, "field", 1),
                1 => foreign.rpush(key, 1),
                2 => foreign.sadd(key, 1),
                _ => foreign.zadd(key, "member", 1),
            };
            foreign.exec_async(&mut connection).await.unwrap();
        }
    })
    .await;
    let counts = counts(&results);
    assert!(counts.keys().all(|count| (1..=QUOTA).contains(count)), "{counts:?}");
    assert_held(&[
        Figure::fault_seen("keys of another type written", times),
        Figure::at_most("windows begun", counts.values().copied().max().unwrap_or(0), times + 1),
    ]);
    assert_eq!(client.circuit_state(), CircuitState::Closed);
    client.take(0, 1).await.unwrap();
    client.assert_sound();
    server.assert_every_key_ends().await;
}
