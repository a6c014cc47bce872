//! Servers that run out of memory, and the memory that a subject needs.

use tollgate_conformance::PlainHash;
use tollgate_core::algo::{Anchor, FixedWindow};
use tollgate_core::{
    Admission, Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Reading, Store,
    StoreError, Subject, Timestamp, Value,
};
use tollgate_redis::{Info, Redis, RuntimeChoice};

use crate::kit::{QUICK, Version, on_every_version, wait_for_replica};
use crate::loaded::{LAYOUTS, dump, start, store};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
/// The most memory in bytes that one subject of a fixed window may take in a table.
const MOST_BYTES: u64 = 48;
/// The most bytes that one decision may add to the replication stream, if a call contains 32
/// decisions.
const MOST_REPLICATED: u64 = 40;

on_every_version! {
    without_memory_windows_go_on_and_new_subjects_are_reported
}

fn limit() -> Limit {
    let window = FixedWindow::new(1_000, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    Limit::new("core", Algorithm::FixedWindow(window)).unwrap()
}

fn subject(number: u64) -> Subject {
    Subject::new([("number", Value::Clear(&number.to_be_bytes()))], &PlainHash)
}

async fn take(store: &Redis, subject: &Subject) -> Result<Reading, StoreError> {
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    Ok(store.apply(NOW, &[Charge { limit: &limit(), subject, operation }]).await?[0])
}

async fn without_memory_windows_go_on_and_new_subjects_are_reported(version: Version) {
    for (choice, _) in LAYOUTS {
        let server = start(version, &["--maxmemory-policy", "noeviction"]).await;
        let store = store(&server, choice).await;
        take(&store, &subject(0)).await.unwrap();
        server.execute(&["CONFIG", "SET", "maxmemory", "1"]).await;
        for used in 2..=100 {
            let reading = take(&store, &subject(0)).await.unwrap();
            assert_eq!((reading.admission, reading.used), (Admission::Now, used), "{choice:?}");
            let refused = take(&store, &subject(used)).await;
            assert_eq!(refused.unwrap_err(), StoreError::Full, "{choice:?}");
        }
        server.execute(&["CONFIG", "SET", "maxmemory", "0"]).await;
        let mut attempts = 0;
        while take(&store, &subject(9_999)).await.is_err() {
            attempts += 1;
            assert!(attempts < 1_000, "{choice:?}: still full");
        }
    }
}

/// The memory is `used_memory` of a server with its own allocator. In that allocator, the sizes of
/// tables are size classes.
#[tokio::test]
async fn a_subject_in_a_table_needs_at_most_forty_eight_bytes() {
    let server = start(Version::System, &[]).await;
    let store = store(&server, RuntimeChoice::Tables).await;
    let mut connection = server.connect().await;
    let subjects: u64 = 200_000;
    let before = used_memory(&mut connection).await;
    let limit = limit();
    for chunk in (0..subjects).collect::<Vec<_>>().chunks(2_000) {
        let named: Vec<_> = chunk.iter().map(|number| subject(*number)).collect();
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
        let charge = |subject| [Charge { limit: &limit, subject, operation }];
        let charges: Vec<_> = named.iter().map(charge).collect();
        let calls: Vec<_> = charges.iter().map(|charges| (NOW, &charges[..])).collect();
        assert!(store.apply_all(&calls).await.iter().all(Result::is_ok));
    }
    let bytes = (used_memory(&mut connection).await - before) / subjects;
    assert!(bytes <= MOST_BYTES, "{bytes} bytes a subject");
}

/// The test uses so many subjects that the first table is divided several times.
#[tokio::test]
async fn divided_tables_keep_every_window_and_replicas_have_the_same_bytes() {
    let primary = start(Version::System, &QUICK).await;
    let replica = start(Version::System, &QUICK).await;
    replica.follow(&primary).await;
    let store = store(&primary, RuntimeChoice::Tables).await;
    let (limit, subjects) = (limit(), 600_000);
    for used in 1..=2 {
        for chunk in (0..subjects).collect::<Vec<_>>().chunks(2_000) {
            let named: Vec<_> = chunk.iter().map(|number| subject(*number)).collect();
            let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
            let charge = |subject| [Charge { limit: &limit, subject, operation }];
            let charges: Vec<_> = named.iter().map(charge).collect();
            let calls: Vec<_> = charges.iter().map(|charges| (NOW, &charges[..])).collect();
            for answer in store.apply_all(&calls).await {
                assert_eq!(answer.unwrap()[0].used, used);
            }
        }
    }
    let mut connection = primary.connect().await;
    wait_for_replica(&mut connection).await;
    let tables = dump(&mut connection).await;
    assert!((4..=16).contains(&tables.len()), "{} tables", tables.len());
    let largest = tables.iter().map(|(_, bytes)| bytes.len()).max();
    assert!(largest < Some(6 << 20), "{largest:?} bytes");
    assert!(dump(&mut replica.connect().await).await == tables, "the replica differs");
    primary.assert_every_key_ends().await;
}

/// The test measures the stream of commands to the replicas. The append-only file receives the same
/// commands.
#[tokio::test]
async fn a_decision_in_a_table_is_replicated_in_at_most_forty_bytes() {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always"];
    let server = start(Version::System, &arguments).await;
    let store = store(&server, RuntimeChoice::Tables).await;
    let mut connection = server.connect().await;
    let (limit, subjects): (_, Vec<_>) = (limit(), (0..3_200).map(subject).collect());
    let before = appended(&mut connection).await;
    for chunk in subjects.chunks(32) {
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
        let charge = |subject| [Charge { limit: &limit, subject, operation }];
        let charges: Vec<_> = chunk.iter().map(charge).collect();
        let calls: Vec<_> = charges.iter().map(|charges| (NOW, &charges[..])).collect();
        assert!(store.apply_all(&calls).await.iter().all(Result::is_ok));
    }
    let bytes = (appended(&mut connection).await - before) / subjects.len() as u64;
    assert!(bytes <= MOST_REPLICATED, "{bytes} bytes a decision");
}

async fn appended(connection: &mut redis::aio::MultiplexedConnection) -> u64 {
    let info: String = redis::cmd("INFO").arg("persistence").query_async(connection).await.unwrap();
    Info::new(&info).number("aof_current_size").expect("aof_current_size")
}

async fn used_memory(connection: &mut redis::aio::MultiplexedConnection) -> u64 {
    let info: String = redis::cmd("INFO").arg("memory").query_async(connection).await.unwrap();
    Info::new(&info).number("used_memory").expect("used_memory")
}
