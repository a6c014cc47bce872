//! Shards that lose counters.

use tollgate_conformance::{Figure, assert_held};
use tollgate_redis::{DataLoss, ShardSettings};

use crate::kit::Server;
use crate::sentinel::until;
use crate::sentinel::watched::Client;

#[tokio::test]
async fn emptied_and_restarted_shards_are_counted() {
    let mut server = Server::start().await;
    let client = Client::connect(&ShardSettings::new(server.url().parse().unwrap())).await;
    until(|| client.store.status()[0].address.is_some()).await;
    assert_eq!(client.take().await, Ok(1));
    while server.keys().await.len() < 2 {
        tokio::time::sleep(crate::sentinel::PAUSE).await;
    }
    server.assert_every_key_ends().await;
    server.execute(&["FLUSHALL"]).await;
    until(|| client.store.windows_lost() == (1, Some(DataLoss::Flushed))).await;
    let mut anew = u64::from(client.take().await == Ok(1));

    server.kill();
    server.start_again(&[]);
    until(|| client.store.windows_lost() == (2, Some(DataLoss::Restarted))).await;
    client.store.ready(crate::sentinel::PATIENCE).await.unwrap();
    anew += u64::from(client.take().await == Ok(1));
    let (lost, _) = client.store.windows_lost();
    assert_held(&[
        Figure::fault_seen("losses reported", lost),
        Figure::at_most("windows begun anew", anew, lost),
    ]);
}

/// A server reports how many keys it evicted, but not their names.
#[tokio::test]
async fn keys_that_are_dropped_for_want_of_memory_are_reported() {
    let server = Server::start_with(&["--maxmemory-policy", "volatile-ttl"]).await;
    let client = Client::connect(&ShardSettings::new(server.url().parse().unwrap())).await;
    assert_eq!(client.take().await, Ok(1));
    // The script writes keys of another program. These keys expire before any key of Tollgate.
    let flood = "for i = 1, 5000 do redis.call('SET', 'flood:' .. i, 'x', 'PX', 60000) end";
    server.execute(&["EVAL", flood, "0"]).await;
    let room = (memory(&server).await - 100_000).to_string();
    server.execute(&["CONFIG", "SET", "maxmemory", &room]).await;
    let lost = || client.store.windows_lost();
    until(|| matches!(lost(), (1.., Some(DataLoss::Evicted { keys: 1.. })))).await;
    let (_, Some(loss)) = lost() else { panic!("{:?}", lost()) };
    assert!(loss.to_string().contains("noeviction"), "{loss}");
    let DataLoss::Evicted { keys } = loss else { panic!("{loss}") };
    // The other program's keys should be evicted first.
    let used = client.take().await.unwrap();
    assert_held(&[
        Figure::fault_seen("keys dropped, and told", keys),
        Figure::at_most("units lost", 2_u64.saturating_sub(used), 0),
    ]);
}

async fn memory(server: &Server) -> u64 {
    let mut connection = server.connect().await;
    let lost: String = redis::cmd("INFO").arg("memory").query_async(&mut connection).await.unwrap();
    let used = lost.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.unwrap().trim().parse().unwrap()
}
