//! State that the module stored, after a snapshot, an append-only file, a copy or replication.

use redis::aio::MultiplexedConnection;
use tollgate_conformance::trace::seeds;
use tollgate_conformance::{Trace, run_trace};
use tollgate_redis::{Info, Redis};

use crate::conformance::run_together;
use crate::kit::{QUICK, Version, on_every_version, wait_for_replica};
use crate::loaded::{LAYOUTS, debugging, dump, start, store};

const TRACES: u64 = 60;
const HOUR_MS: u64 = 3_600_000;

on_every_version! {
    reloads_and_copies_keep_every_byte
    an_append_only_file_keeps_every_byte
    a_replica_has_every_byte
    a_replica_that_reconnects_has_every_byte
}

async fn fill(store: &Redis, first: u64) {
    for (trace, first) in
        [(Trace::random as fn(u64) -> _, first), (Trace::reserving, first + TRACES)]
    {
        for seed in seeds(first, TRACES) {
            run_trace(store, &trace(seed), "filling").await.unwrap_or_else(|it| panic!("{it}"));
        }
    }
    for seed in seeds(first + 2 * TRACES, TRACES) {
        run_together(store, seed).await;
    }
}

/// Makes every key end in an hour, so no key ends between two reads that are compared.
async fn prolong(connection: &mut MultiplexedConnection) {
    let names: Vec<String> = redis::cmd("KEYS").arg("*").query_async(connection).await.unwrap();
    let mut prolong = redis::pipe();
    for name in names {
        prolong.cmd("PEXPIRE").arg(name).arg(HOUR_MS).ignore();
    }
    prolong.exec_async(connection).await.unwrap();
}

async fn reloads_and_copies_keep_every_byte(version: Version) {
    let server = start(version, debugging(version)).await;
    let mut connection = server.connect().await;
    for ((choice, _), first) in LAYOUTS.into_iter().zip([22_000_000, 23_000_000]) {
        fill(&store(&server, choice).await, first).await;
    }
    prolong(&mut connection).await;
    let before = dump(&mut connection).await;
    assert!(before.iter().any(|(name, _)| name.contains('#')), "no table");
    server.execute(&["DEBUG", "RELOAD"]).await;
    assert_eq!(dump(&mut connection).await, before);
    for (name, bytes) in before {
        let saved: Vec<u8> =
            redis::cmd("DUMP").arg(&name).query_async(&mut connection).await.unwrap();
        redis::cmd("RESTORE")
            .arg("restored")
            .arg(0)
            .arg(saved)
            .exec_async(&mut connection)
            .await
            .unwrap();
        let restored: Vec<u8> =
            redis::cmd("GET").arg("restored").query_async(&mut connection).await.unwrap();
        assert_eq!(restored, bytes);
        server.execute(&["COPY", &name, "copied"]).await;
        let copied: Vec<u8> =
            redis::cmd("GET").arg("copied").query_async(&mut connection).await.unwrap();
        assert_eq!(copied, bytes);
        server.execute(&["UNLINK", "restored", "copied"]).await;
    }
}

async fn an_append_only_file_keeps_every_byte(version: Version) {
    let arguments = [&["--appendonly", "yes"], debugging(version)].concat();
    let server = start(version, &arguments).await;
    let mut connection = server.connect().await;
    for ((choice, _), first) in LAYOUTS.into_iter().zip([24_000_000, 25_000_000]) {
        fill(&store(&server, choice).await, first).await;
    }
    prolong(&mut connection).await;
    let before = dump(&mut connection).await;
    server.execute(&["DEBUG", "LOADAOF"]).await;
    assert_eq!(dump(&mut connection).await, before);
}

async fn a_replica_has_every_byte(version: Version) {
    let primary = start(version, &QUICK).await;
    let replica = start(version, &QUICK).await;
    replica.follow(&primary).await;
    let mut connection = primary.connect().await;
    for ((choice, _), first) in LAYOUTS.into_iter().zip([26_000_000, 27_000_000]) {
        fill(&store(&primary, choice).await, first).await;
    }
    prolong(&mut connection).await;
    wait_for_replica(&mut connection).await;
    let (of_primary, of_replica) =
        (dump(&mut connection).await, dump(&mut replica.connect().await).await);
    assert_eq!(of_replica, of_primary);
}

/// The primary closes the connection of its replica between two commands. The replica continues
/// from the data that it has (`PSYNC`), without a full synchronization.
async fn a_replica_that_reconnects_has_every_byte(version: Version) {
    let arguments = [&QUICK[..], &["--repl-backlog-size", "256mb"]].concat();
    let primary = start(version, &arguments).await;
    let replica = start(version, &arguments).await;
    replica.follow(&primary).await;
    let mut connection = primary.connect().await;
    for ((choice, _), first) in LAYOUTS.into_iter().zip([28_000_000, 29_000_000]) {
        let store = store(&primary, choice).await;
        fill(&store, first).await;
        primary.execute(&["CLIENT", "KILL", "TYPE", "replica"]).await;
        fill(&store, first + 3 * TRACES).await;
        wait_for_replica(&mut connection).await;
    }
    prolong(&mut connection).await;
    wait_for_replica(&mut connection).await;
    let (of_primary, of_replica) =
        (dump(&mut connection).await, dump(&mut replica.connect().await).await);
    assert_eq!(of_replica, of_primary);
    let stats: String = redis::cmd("INFO").arg("stats").query_async(&mut connection).await.unwrap();
    let stats = Info::new(&stats);
    let count = |name| stats.field(name).and_then(|count| count.parse::<u64>().ok());
    assert_eq!((count("sync_full"), count("sync_partial_ok")), (Some(1), Some(2)));
}
