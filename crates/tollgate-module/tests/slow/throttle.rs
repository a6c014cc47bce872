//! `CL.THROTTLE` in the server, as clients of redis-cell use it.

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};

use crate::kit::{QUICK, Version, on_every_version, wait_for_replica};
use crate::loaded::{dump, start};

on_every_version! {
    clients_of_redis_cell_get_its_answers
}

async fn throttle(connection: &mut MultiplexedConnection, words: &str) -> RedisResult<Vec<i64>> {
    redis::cmd("CL.THROTTLE")
        .arg(words.split(' ').collect::<Vec<_>>())
        .query_async(connection)
        .await
}

/// A token arrives only every hour. The duration of the test therefore changes no number of the
/// replies except the resets.
async fn clients_of_redis_cell_get_its_answers(version: Version) {
    let server = start(version, &QUICK).await;
    let replica = start(version, &QUICK).await;
    replica.follow(&server).await;
    let mut connection = server.connect().await;
    for taken in 1..=3 {
        let answer = throttle(&mut connection, "user 2 1 3600").await.unwrap();
        assert_eq!(answer[..4], [0, 3, 3 - taken, -1]);
        assert!((3_600 * taken - 60..=3_600 * taken).contains(&answer[4]), "{answer:?}");
    }
    let refused = throttle(&mut connection, "user 2 1 3600").await.unwrap();
    assert_eq!(refused[..3], [1, 3, 0]);
    assert!((3_540..=3_600).contains(&refused[3]), "{refused:?}");

    let mut transaction = redis::pipe();
    transaction.atomic();
    for _ in 0..2 {
        transaction.cmd("CL.THROTTLE").arg(&["other", "0", "1", "3600"]);
    }
    let both: Vec<Vec<i64>> = transaction.query_async(&mut connection).await.unwrap();
    assert_eq!((both[0][0], both[1][0]), (0, 1));
    let script = "return redis.call('CL.THROTTLE', KEYS[1], 0, 1, 3600)";
    let within: Vec<i64> =
        redis::cmd("EVAL").arg(&[script, "1", "third"]).query_async(&mut connection).await.unwrap();
    assert_eq!(within[..4], [0, 1, 0, -1]);

    for words in ["user", "user 1 0 60", "user 1 1 60 -1", "user x 1 60", "user 1 1 60 1 1"] {
        let before = dump(&mut connection).await;
        assert!(throttle(&mut connection, words).await.is_err(), "{words}");
        assert_eq!(dump(&mut connection).await, before);
    }
    server.execute(&["RPUSH", "list", "x"]).await;
    let foreign = throttle(&mut connection, "list 1 1 60").await.unwrap_err();
    assert_eq!(foreign.code(), Some("WRONGTYPE"));
    server.execute(&["DEL", "list"]).await;
    server.assert_every_key_ends().await;
    wait_for_replica(&mut connection).await;
    assert_eq!(dump(&mut replica.connect().await).await, dump(&mut connection).await);
    let _: Value = redis::cmd("PING").query_async(&mut connection).await.unwrap();
}
