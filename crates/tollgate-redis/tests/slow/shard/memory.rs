//! Servers without free memory.

use tollgate_conformance::{Figure, assert_held};
use tollgate_core::{
    CasOutcome, ChargeId, ChargePosition, Cost, Deduplication, Operation, SharedBlob, StoreError,
};
use tollgate_redis::StepError;

use super::*;
use crate::kit::on_every_version;
use crate::shard::site::patient;

/// The number of callers of the existing window. The same number of callers charge windows that do
/// not exist yet.
const EACH: u64 = 50;
/// The most failed calls after memory is free again.
const IN_VAIN: u64 = 1_000;

on_every_version! {
    without_memory_windows_go_on_and_new_keys_are_reported
    a_document_of_which_one_key_was_evicted_can_be_written_again
}

async fn without_memory_windows_go_on_and_new_keys_are_reported(version: Version) {
    for way in Way::of(version) {
        let server = way.start(version, &["--maxmemory-policy", "noeviction"]).await;
        let client = Client::new(&patient(server.url().parse().unwrap()), *way, 1 << 20).await;
        let position = client.take(0, 1).await.unwrap().position;
        server.execute(&["CONFIG", "SET", "maxmemory", "1"]).await;

        let (old, new) = callers_of_both(&client).await;
        let full = BatcherError::Step(StepError::Full);
        let once = once(2..=EACH + 1);
        let otherwise =
            counts(&old).iter().filter(|entry| once.get(entry.0) != Some(entry.1)).count();
        let refused = new.iter().filter(|entry| **entry == Err(full.clone())).count() as u64;
        assert_held(&[
            Figure::fault_seen("charges refused for want of memory", refused),
            Figure::at_most("units admitted to somebody new", EACH - refused, 0),
            Figure::at_most("counts of who has a window not told once", otherwise as u64, 0),
        ]);
        assert_eq!(counts(&old).len() as u64, EACH, "{way:?}");
        assert_eq!(StoreError::from(full.clone()), StoreError::Full);
        for (deduplication, left) in
            [(Deduplication::Unneeded, EACH), (Deduplication::ById, EACH - 1)]
        {
            let back = client.apply(0, refund(position, deduplication), PATIENCE).await.unwrap();
            assert_eq!((back.refunded, back.used), (1, left), "{way:?}");
        }
        assert_eq!(client.take(9_999, 0).await.unwrap().used, 0, "{way:?}: a look needs no key");

        server.execute(&["CONFIG", "SET", "maxmemory", "0"]).await;
        let mut in_vain = 0;
        while client.take(10_000, 1).await == Err(full.clone()) {
            in_vain += 1;
            assert!(in_vain < IN_VAIN, "{way:?}: still full");
        }
        let batcher = &client.store.status()[0];
        assert_eq!((batcher.circuit_state, batcher.opened), (CircuitState::Closed, 0), "{way:?}");
        client.assert_sound();
        server.assert_every_key_ends().await;
    }
}

async fn a_document_of_which_one_key_was_evicted_can_be_written_again(version: Version) {
    let server = Way::Script.start(version, &[]).await;
    let endpoint = patient(server.url().parse().unwrap());
    let client = Client::new(&endpoint, Way::Script, 1 << 20).await;
    for key in ["version", "document"] {
        let document = SharedBlob { version: key.into(), bytes: b"rules".to_vec() };
        let replace =
            async |before| client.store.replace_shared_blob(key, before, &document, PATIENCE).await;
        assert_eq!(replace(b"").await, Ok(CasOutcome::Stored));
        assert_eq!(replace(b"").await, Ok(CasOutcome::Stale));
        server.execute(&["DEL", &format!("tg1:{{{key}}}:{key}")]).await;
        assert_eq!(client.store.shared_blob(key).await, Ok(SharedBlob::default()));
        assert_eq!(replace(b"").await, Ok(CasOutcome::Stored), "without {key}");
        assert_eq!(client.store.shared_blob(key).await.as_ref(), Ok(&document));
    }
}

type Told = Vec<Result<Reading, BatcherError>>;

/// Runs concurrent callers. Returns the results of the callers of the existing window, and the
/// results of the callers that each charge a new window.
async fn callers_of_both(client: &Arc<Client>) -> (Told, Told) {
    let (mut old, mut new) = (JoinSet::new(), JoinSet::new());
    for number in 1..=EACH {
        let (one, other) = (Arc::clone(client), Arc::clone(client));
        old.spawn(async move { one.take(0, 1).await });
        new.spawn(async move { other.take(number, 1).await });
    }
    (old.join_all().await, new.join_all().await)
}

fn refund(position: ChargePosition, deduplication: Deduplication) -> Operation {
    Operation::Refund { cost: Cost::ONE, position, id: ChargeId(1), deduplication }
}
