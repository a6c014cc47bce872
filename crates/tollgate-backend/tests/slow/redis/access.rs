//! Tests that the shipped user has all permissions that the complete store needs, and that servers
//! without some commands are used.

use tempfile::TempDir;
use tollgate::model::algo::Concurrency;
use tollgate::model::{Algorithm, Limit, Millis};
use tollgate_backend::{ListCursor, ListError, ListFilter};
use tollgate_conformance::check;
use tollgate_redis::StepRuntime;

use crate::kit::{Server, Version, on_every_version};
use crate::redis::fleet::{PATIENT, open, routed_by_subject, shards};
use crate::redis::pairs::{InStep, is_read_from, pairs, served, words};

on_every_version! {
    the_shipped_user_drives_the_whole
}

/// The policy has two shards. Each shard has a replica that serves reads.
async fn the_shipped_user_drives_the_whole(version: Version) {
    let pairs = pairs(version, 2).await;
    for server in pairs.iter().flatten() {
        admit_shipped_user(server, version).await;
    }
    let folder = TempDir::new().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, "password\n").unwrap();
    let store = open(&routed_by_subject(&format!(
        "{}, {PATIENT}, deny_cache: false, user: tollgate, password: {{ file: \"{}\" }}",
        words(&pairs),
        password.display(),
    )));
    let status = served(&store).await;
    let runs = if version.has_functions() { StepRuntime::Function } else { StepRuntime::Script };
    assert!(status.iter().all(|shard| shard.runs == runs), "{status:?}");
    is_read_from(&store, &pairs).await;

    check(&InStep::new(&store, &pairs).await, "as the shipped user").await;
    for shard in store.status() {
        assert!(shard.batchers.iter().all(|batcher| batcher.counts.jobs > 0), "{shard:?}");
    }
    let limit =
        Limit::new("core", Algorithm::Concurrency(Concurrency::new(1, Millis::new(1)).unwrap()));
    let sought = ListFilter { limit: &limit.unwrap(), dimension: "token", prefix: b"" };
    let listed = store.subjects(sought, ListCursor::default()).await.unwrap();
    assert_eq!(listed.unwrap_err(), ListError::NotPermitted);
    for [primary, _] in &pairs {
        primary.assert_every_key_ends().await;
    }
}

/// The bug: a server that does not support `ROLE`, like those of some services, was never used,
/// although `INFO` reports the role too.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_the_command_role_was_never_used() {
    let server = Server::start_with(&["--rename-command", "ROLE", ""]).await;
    let own = shards(&[&server]);
    let store = open(&routed_by_subject(&format!("{own}, {PATIENT}, deny_cache: false")));
    served(&store).await;
    check(&store, "without the command ROLE").await;
}

async fn admit_shipped_user(server: &Server, version: Version) {
    let user = version.shipped_user();
    let user: Vec<_> = user.iter().map(String::as_str).collect();
    server.execute(&[&["ACL", "SETUSER"], &user[..]].concat()).await;
}
