//! A process that stays on the previous shard map.

use crate::shards::fleet::{Fleet, charge, node};
use crate::support::client::fetch;

#[tokio::test]
async fn it_holds_the_move_and_is_reported() {
    let fleet = Fleet::start(2).await;
    let stays = node(&fleet.policy("old.yaml", &[0], None));
    // The process has announced its map once a server has answered.
    assert_eq!(charge(&[&stays], 1, 1), [1]);
    let waits = node(&fleet.policy("new.yaml", &[0, 1], Some(&[0])));
    waits.wait_for_log("1 node uses the previous shard map");
    stays.wait_for_log("1 node uses another shard map");
    let status = || fetch(waits.listener("admin"), "GET", "/v1/status", None).body;
    assert!(status().contains("\"phase\":\"dual_write\""), "{}", status());
    assert!(status().contains("\"previous\":1"), "{}", status());
    drop(stays);
    waits.wait_for_log("no node uses the previous shard map");
    waits.wait_for_log("the new shards of moving subjects decide");
    assert!(status().contains("\"phase\":\"cutover\""), "{}", status());
}
