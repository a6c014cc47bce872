//! Runs the tests for every store with cell transfer: with and without batchers, within a server
//! and between two servers.

use std::time::Duration;

use tollgate_conformance::PlainHash;
use tollgate_conformance::suite::check_transfer;
use tollgate_redis::{Endpoint, Keys, LinkLimits, RedisShard, RuntimeChoice, ShardSettings};

use crate::kit::{Server, Version, on_every_version};
use crate::shard::Way;
use crate::transfer::store;

/// The time limit of each wait of a test. A busy machine does not reach this limit.
const PATIENCE: Duration = Duration::from_secs(60);

on_every_version! {
    cells_are_carried_from_one_server_to_another
    cells_are_carried_over_lanes
}

/// Returns pairs of the ways of `version`. Each way is the first way of one pair and the second way
/// of one pair.
fn pairs(version: Version) -> impl Iterator<Item = [Way; 2]> {
    let ways = Way::of(version);
    (0..ways.len()).map(|first| [ways[first], ways[(first + 1) % ways.len()]])
}

async fn cells_are_carried_from_one_server_to_another(version: Version) {
    for [one, other] in pairs(version).chain([[Way::Tables, Way::Module]]) {
        let (from, to) = (one.start(version, &[]).await, other.start(version, &[]).await);
        {
            let (from, to) = (store(&from, one.choice()).await, store(&to, other.choice()).await);
            assert_eq!([from.runtime(), to.runtime()], [one.runs(), other.runs()]);
            check_transfer(&from, &to, "there").await;
            check_transfer(&to, &from, "back").await;
        }
        from.assert_every_key_ends().await;
        to.assert_every_key_ends().await;
    }
}

async fn cells_are_carried_over_lanes(version: Version) {
    for way in Way::of(version) {
        let [one, other] = [way.start(version, &[]).await, way.start(version, &[]).await];
        let (from, to) = (shard(&one, way.choice()).await, shard(&other, way.choice()).await);
        check_transfer(&from, &to, "lanes").await;
        check_transfer(&to, &store(&one, way.choice()).await, "back").await;
        one.assert_every_key_ends().await;
        other.assert_every_key_ends().await;
    }
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
