//! Runs the conformance suite of all stores on the complete store.

use tollgate_backend::{Backend, Counts};
use tollgate_conformance::check;
use tollgate_policy::StoreSettings;
use tollgate_redis::StepRuntime;

use crate::kit::Server;
use crate::redis::fleet::{PATIENT, loaded, open, routed_by_subject, shards};
use crate::redis::pairs::served;

#[tokio::test]
async fn memory_is_a_store() {
    let mut loaded = loaded("shards: { a: { primary: \"redis://127.0.0.1:9\" } }");
    loaded.settings.store = StoreSettings::default();
    let store = open(&loaded);
    assert!(matches!(store, Backend::Memory(_)) && store.started().await.is_empty());
    check(&store, "memory").await;
}

#[tokio::test]
async fn one_shard_is_a_store() {
    passes(1, "auto", StepRuntime::Function).await;
}

#[tokio::test]
async fn charges_that_span_three_shards_are_a_store() {
    passes(3, "auto", StepRuntime::Function).await;
}

#[tokio::test]
async fn shards_that_run_scripts_are_a_store() {
    passes(2, "script", StepRuntime::Script).await;
}

async fn passes(count: usize, step: &str, runs: StepRuntime) {
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(Server::start().await);
    }
    let shards = shards(&servers.iter().collect::<Vec<_>>());
    // The deny cache repeats answers for a short time and marks them. The suite checks exact
    // answers, so the cache is off.
    let store = format!("{shards}, {PATIENT}, deny_cache: false, scripting: {step}");
    let store = open(&routed_by_subject(&store));
    let status = served(&store).await;
    assert!(status.iter().all(|shard| shard.runs == runs), "{status:?}");
    check(&store, "backend").await;
    let Backend::Redis(fleet) = &store else { panic!("{store:?}") };
    let counts = fleet.counts();
    assert!(counts.discarded > 0, "the suite comes from impossible futures, too");
    assert_eq!(counts, Counts { discarded: counts.discarded, ..Counts::default() });
    for server in &servers {
        server.assert_every_key_ends().await;
    }
}
