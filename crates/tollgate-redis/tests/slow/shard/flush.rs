//! Servers that are flushed.

use super::*;

in_every_way! {
    a_step_that_is_flushed_all_the_time_is_loaded_all_the_time
    a_server_that_is_flushed_all_the_time_begins_anew_each_time
}

async fn a_step_that_is_flushed_all_the_time_is_loaded_all_the_time(way: Way) {
    let Site { server, client, .. } = &Site::start(way, 1 << 20).await;
    let connection = server.connect().await;
    let (results, times) = calls_during(client, |time| {
        let mut connection = connection.clone();
        async move {
            let forget = if time % 2 == 0 { "FUNCTION" } else { "SCRIPT" };
            redis::cmd(forget).arg("FLUSH").exec_async(&mut connection).await.unwrap();
        }
    })
    .await;
    assert_eq!(counts(&results), once(1..=CALLERS * CALLS), "after {times} times");
    assert_eq!(client.store.status()[0].opened, 0);
    client.assert_sound();
}

/// A flush ends every window early. A flush has no other effect.
async fn a_server_that_is_flushed_all_the_time_begins_anew_each_time(way: Way) {
    const QUOTA: u64 = 5;
    let Site { server, client, .. } = &Site::start(way, QUOTA).await;
    let connection = server.connect().await;
    let (results, times) = calls_during(client, |_| {
        let mut connection = connection.clone();
        async move {
            let _losing = client.recorder.begin_loss();
            redis::cmd("FLUSHALL").exec_async(&mut connection).await.unwrap();
        }
    })
    .await;
    let counts = counts(&results);
    assert!(counts.keys().all(|count| (1..=QUOTA).contains(count)), "{counts:?}");
    assert!(counts.values().all(|results| *results <= times + 1), "{counts:?} in {times} times");
    let losing = client.recorder.begin_loss();
    server.execute(&["FLUSHALL"]).await;
    drop(losing);
    assert_eq!(client.take(0, 1).await.unwrap().used, 1);
    client.assert_sound();
    server.assert_every_key_ends().await;
}
