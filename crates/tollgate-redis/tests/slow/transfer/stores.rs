//! The tests for every store with cell transfer: with and without batchers, within a server and
//! between two servers.

use std::time::Duration;

use tollgate_conformance::PlainHash;
use tollgate_conformance::suite::check_transfer;
use tollgate_redis::{Endpoint, Keys, LinkLimits, RedisShard, RuntimeChoice, ShardSettings};

use crate::kit::{Server, Version, on_every_version};
use crate::transfer::store;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

on_every_version! {
    cells_are_carried_from_one_server_to_another
    cells_are_carried_over_lanes
}

async fn cells_are_carried_from_one_server_to_another(version: Version) {
    let from = Server::start_version(version, &[]).await;
    let to = Server::start_version(version, &[]).await;
    for (choice, other) in
        [(RuntimeChoice::Best, RuntimeChoice::Script), (RuntimeChoice::Script, RuntimeChoice::Best)]
    {
        let (from, to) = (store(&from, choice).await, store(&to, other).await);
        check_transfer(&from, &to, &format!("{choice:?}")).await;
    }
    from.assert_every_key_ends().await;
    to.assert_every_key_ends().await;
}

async fn cells_are_carried_over_lanes(version: Version) {
    let [one, other] =
        [Server::start_version(version, &[]).await, Server::start_version(version, &[]).await];
    for choice in [RuntimeChoice::Best, RuntimeChoice::Script] {
        let (from, to) = (shard(&one, choice).await, shard(&other, choice).await);
        check_transfer(&from, &to, &format!("lanes {choice:?}")).await;
        check_transfer(&to, &store(&one, choice).await, &format!("back {choice:?}")).await;
    }
    one.assert_every_key_ends().await;
    other.assert_every_key_ends().await;
}

async fn shard(server: &Server, choice: RuntimeChoice) -> RedisShard {
    let endpoint: Endpoint = server.url().parse().expect("an address");
    let mut settings = ShardSettings::new(endpoint);
    settings.link = LinkLimits {
        connect: PATIENCE,
        proof: PATIENCE,
        heartbeat_answer: PATIENCE,
        ..LinkLimits::default()
    };
    let store = RedisShard::open(&settings, Keys::new(PlainHash), choice).with_deadline(PATIENCE);
    store.ready(PATIENCE).await.expect("the server");
    store
}
