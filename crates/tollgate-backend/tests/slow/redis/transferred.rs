//! Cells that are transferred from memory into a server, and back.

use tollgate::store::Memory;
use tollgate_conformance::PlainHash;
use tollgate_conformance::suite::check_transfer;
use tollgate_redis::{Keys, Redis, RuntimeChoice};

use crate::kit::{Server, Version, on_every_version};

on_every_version! {
    cells_are_carried_between_memory_and_a_server
}

async fn cells_are_carried_between_memory_and_a_server(version: Version) {
    let server = Server::start_version(version, &[]).await;
    let memory = Memory::default();
    for choice in [RuntimeChoice::Best, RuntimeChoice::Script] {
        let keys = Keys::new(PlainHash);
        let redis = Redis::new(server.connect().await, keys, choice).await.expect("a step");
        check_transfer(&memory, &redis, &format!("in {choice:?}")).await;
        check_transfer(&redis, &memory, &format!("out {choice:?}")).await;
    }
    server.assert_every_key_ends().await;
}
