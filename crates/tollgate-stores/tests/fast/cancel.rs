//! Callers that are cancelled in the middle of a call over several shards.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tollgate::model::{Store, StoreError};
use tollgate_stores::Deadline;
use tollgate_stores::atomic::MAX_SPANNING_CALLS;

use crate::atomic::two_faulty;
use crate::faulty::Trouble;
use crate::setup::{NOW, apply_one, at_once, charge, fixed, take, until, user};

/// Cancels a caller while the second shard, with a quota of `quota` units, is slow. Asserts that
/// both shards have charged `units` of the call at the end.
async fn leaves(quota: u64, units: u64) {
    let (store, users) = two_faulty();
    let [one, two] = users.map(user);
    let (wide, narrow) = (fixed("wide", 9), fixed("narrow", quota));
    let gate = Arc::new(Semaphore::new(0));
    store.partitions().shards()[1].store.next([Trouble::Held(Arc::clone(&gate))]);
    let charges = [charge(&wide, &one, take(2, 1)), charge(&narrow, &two, take(2, 1))];
    let impatient = Deadline::new(&store).with_budget(Duration::from_millis(5));
    assert_eq!(impatient.apply(NOW, &charges).await.unwrap_err(), StoreError::TimedOut);
    let used =
        |limit, subject| at_once(apply_one(&store, NOW, limit, subject, take(0, 0))).unwrap().used;
    assert_eq!(used(&wide, &one), 2, "held while the other shard is awaited");
    assert_eq!(used(&narrow, &two), 0);
    gate.add_permits(1);
    // The call continues without its caller.
    until(|| used(&wide, &one) == units && used(&narrow, &two) == units).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_without_its_caller_is_still_all_or_nothing() {
    leaves(9, 2).await;
    leaves(1, 0).await;
}

#[tokio::test]
async fn calls_that_span_are_bounded_in_number() {
    let (store, users) = two_faulty();
    let store = Arc::new(store);
    let gate = Arc::new(Semaphore::new(0));
    store.partitions().shards()[1].store.usually(Trouble::Held(Arc::clone(&gate)));
    let limit = fixed("core", 1 << 20);
    let mut callers = Vec::new();
    for id in 0..MAX_SPANNING_CALLS as u128 {
        let (store, limit) = (Arc::clone(&store), limit.clone());
        callers.push(tokio::spawn(async move {
            let [one, two] = users.map(user);
            let charges = [charge(&limit, &one, take(1, id)), charge(&limit, &two, take(1, id))];
            store.apply(NOW, &charges).await
        }));
    }
    until(|| store.partitions().shards()[1].store.calls() == MAX_SPANNING_CALLS).await;
    let [one, two] = users.map(user);
    let charges = [charge(&limit, &one, take(1, 0)), charge(&limit, &two, take(1, 0))];
    assert_eq!(store.apply(NOW, &charges).await.unwrap_err(), StoreError::Unavailable);
    assert!(
        store.apply(NOW, &charges[..1]).await.unwrap().all_admitted(),
        "one partition needs no room"
    );
    gate.add_permits(MAX_SPANNING_CALLS);
    for caller in callers {
        assert!(caller.await.unwrap().unwrap().all_admitted());
    }
}
