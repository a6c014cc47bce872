//! Shards that lose what was counted in them.

use tollgate_redis::{Loss, ShardSettings};

use crate::kit::Server;
use crate::until;
use crate::watched::Client;

#[tokio::test]
async fn emptied_and_restarted_shards_are_counted() {
    let mut server = Server::start().await;
    let client = Client::connect(&ShardSettings::new(server.url().parse().unwrap())).await;
    until(|| client.store.status()[0].address.is_some()).await;
    assert_eq!(client.take().await, Ok(1));
    while server.keys().await.len() < 2 {
        tokio::time::sleep(crate::PAUSE).await;
    }
    server.assert_every_key_ends().await;
    server.tell(&["FLUSHALL"]).await;
    until(|| client.store.windows_lost() == (1, Some(Loss::Flushed))).await;
    assert_eq!(client.take().await, Ok(1));

    server.kill();
    server.start_again(&[]);
    until(|| client.store.windows_lost() == (2, Some(Loss::Restarted))).await;
    client.store.ready(crate::PATIENCE).await.unwrap();
    assert_eq!(client.take().await, Ok(1));
}
