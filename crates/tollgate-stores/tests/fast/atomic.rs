//! All-or-nothing calls over several shards.

use std::sync::Arc;

use proptest::prelude::*;
use tokio::sync::Semaphore;
use tollgate::model::{
    Admission, ChargeId, ChargePosition, Cost, DecisionSource, Millis, Operation, Refusals, Store,
    StoreError,
};
use tollgate::store::Memory;
use tollgate_stores::atomic::{max_held_units, max_store_calls};
use tollgate_stores::{Atomic, Shard, Sharded};

use crate::faulty::{Faulty, Trouble};
use crate::setup::{
    NOW, WINDOW, apply_one, at_once, calendar, calls, charge, comparable, fixed, in_flight, key,
    of_every_kind, refund, replay, take, until, user,
};

pub(crate) fn sharded<S>(stores: impl IntoIterator<Item = S>) -> Sharded<S> {
    let shard = |(number, store): (usize, S)| Shard {
        name: format!("shard-{number}").into(),
        weight: 1,
        store,
    };
    Sharded::new(key(), stores.into_iter().enumerate().map(shard)).unwrap()
}

pub(crate) fn over<S: Store>(stores: impl IntoIterator<Item = S>) -> Atomic<Sharded<S>> {
    Atomic::new(sharded(stores))
}

/// Returns a store over two shards, and for each shard a user that belongs to the shard.
pub(crate) fn two_faulty() -> (Atomic<Sharded<Faulty>>, [u64; 2]) {
    let store = over([Faulty::new(), Faulty::new()]);
    let at_home = |name: &str| {
        (0..).find(|number| &*store.partitions().shard_for(&user(*number)).name == name).unwrap()
    };
    let users = [at_home("shard-0"), at_home("shard-1")];
    (store, users)
}

proptest! {
    #[test]
    fn several_shards_answer_as_one_store(trace in calls(7, 3)) {
        let limits = of_every_kind(4);
        let (sharded, single) = (over([(); 3].map(|()| Memory::default())), Memory::default());
        replay(&trace, &limits, |now, charges| {
            let spread = at_once(sharded.apply(now, charges)).unwrap();
            let whole = single.apply_now(now, charges).unwrap();
            prop_assert_eq!(comparable(&spread), comparable(&whole));
            Ok(())
        })?;
        prop_assert_eq!(sharded.unrefunded(), 0);
    }

    #[test]
    fn a_call_that_fails_anywhere_leaves_everything_as_it_was(
        trace in calls(6, 3),
        fail in prop::collection::vec(any::<bool>(), 200),
    ) {
        // The limit that counts refusals is left out, because a failed call has already counted one
        // refusal.
        let limits = &of_every_kind(4)[..6];
        let (sharded, single) = (over([Faulty::new(), Faulty::new()]), Memory::default());
        let mut fail = fail.into_iter().cycle();
        let failing = &sharded.partitions().shards()[1].store;
        replay(&trace, limits, |now, charges| {
            if fail.next().unwrap() {
                let before = failing.calls();
                failing.next([Trouble::Lost(StoreError::Unavailable)]);
                let answer = at_once(sharded.apply(now, charges));
                if failing.calls() > before {
                    prop_assert_eq!(answer.unwrap_err(), StoreError::Unavailable);
                    return Ok(());
                }
                // The failing shard received no call. A peek consumes the fault that is still set.
                let whole = single.apply_now(now, charges).unwrap();
                prop_assert_eq!(comparable(&answer.unwrap()), comparable(&whole));
                let peek = [charge(&limits[0], charges[0].subject, take(0, 0))];
                let _ = at_once(failing.apply(now, &peek));
                return Ok(());
            }
            let spread = at_once(sharded.apply(now, charges)).unwrap();
            let whole = single.apply_now(now, charges).unwrap();
            prop_assert_eq!(comparable(&spread), comparable(&whole));
            Ok(())
        })?;
        prop_assert_eq!(sharded.unrefunded(), 0);
    }
}

#[test]
fn a_call_with_one_home_is_one_call_there() {
    let (store, [here, _]) = two_faulty();
    let (core, search, subject) = (fixed("core", 5), fixed("search", 5), user(here));
    let both = [charge(&core, &subject, take(1, 1)), charge(&search, &subject, take(2, 1))];
    let readings = at_once(store.apply(NOW, &both)).unwrap();
    assert_eq!((readings[0].used, readings[1].used), (1, 2));
    assert_eq!(store.partitions().shards()[0].store.calls(), max_store_calls(1));
    assert_eq!(store.partitions().shards()[1].store.calls(), 0);
    assert!(at_once(store.apply(NOW, &[])).unwrap().is_empty());
}

#[test]
fn a_refused_call_is_refunded_and_counted_once_where_refusals_count() {
    let (store, users) = two_faulty();
    let [one, two] = users.map(user);
    let (free, flight, full) = (fixed("free", 5), in_flight("flight", 2), fixed("full", 1));
    let hammered = fixed("hammered", 9).with_refusals(Refusals::Counted).unwrap();
    assert!(at_once(apply_one(&store, NOW, &full, &two, take(1, 1))).is_ok());
    let charges = [
        charge(&free, &one, take(3, 2)),
        charge(&full, &two, take(1, 2)),
        charge(&hammered, &one, take(2, 2)),
        charge(&flight, &one, take(1, 2)),
    ];
    for round in 1..=3 {
        let readings = at_once(store.apply(NOW, &charges)).unwrap();
        let fits: Vec<_> = readings.iter().map(|reading| reading.admission).collect();
        assert_eq!(
            fits,
            [Admission::Now, Admission::At(NOW.after(WINDOW)), Admission::Now, Admission::Now]
        );
        let used: Vec<_> = readings.iter().map(|reading| reading.used).collect();
        assert_eq!(used, [0, 1, 2 * round, 0]);
        assert_eq!(readings[0].refunded, 0, "it was a take");
    }
    let at = |index: usize| store.partitions().shards()[index].store.calls();
    assert_eq!(at(0) + at(1) - 1, 3 * max_store_calls(2));
}

#[test]
fn a_call_without_an_answer_counts_nothing_even_where_refusals_count() {
    let (store, users) = two_faulty();
    let [one, two] = users.map(user);
    let (free, other) = (fixed("free", 5), fixed("other", 5));
    let hammered = fixed("hammered", 9).with_refusals(Refusals::Counted).unwrap();
    let charges = [
        charge(&free, &one, take(3, 1)),
        charge(&hammered, &one, take(2, 1)),
        charge(&other, &two, take(1, 1)),
    ];
    store.partitions().shards()[1].store.next([Trouble::Lost(StoreError::Unavailable)]);
    assert_eq!(at_once(store.apply(NOW, &charges)).unwrap_err(), StoreError::Unavailable);
    for limit in [&free, &hammered] {
        let reading = at_once(apply_one(&store, NOW, limit, &one, take(0, 2))).unwrap();
        assert_eq!(reading.used, 0, "{}", limit.name());
    }
}

#[test]
fn what_cannot_be_refunded_is_counted_and_shown() {
    let (store, users) = two_faulty();
    let [one, two] = users.map(user);
    let (free, full) = (fixed("free", 5), fixed("full", 1));
    assert!(at_once(apply_one(&store, NOW, &full, &two, take(1, 1))).is_ok());
    let first = &store.partitions().shards()[0].store;
    first.next([Trouble::None, Trouble::Lost(StoreError::Unavailable)]);
    let charges = [charge(&free, &one, take(3, 2)), charge(&full, &two, take(1, 2))];
    let readings = at_once(store.apply(NOW, &charges)).unwrap();
    assert!(!readings.all_admitted());
    assert_eq!(readings[0].used, 3);
    assert_eq!(store.unrefunded(), 1);
}

#[test]
fn refunds_and_renewals_stand_each_for_itself() {
    let (store, users) = two_faulty();
    let [one, two] = users.map(user);
    let (core, flight) = (calendar("core", 5), in_flight("flight", 5));
    let taken = at_once(apply_one(&store, NOW, &core, &one, take(3, 1))).unwrap();
    let charges = [
        charge(&core, &one, refund(3, 1, taken.position)),
        charge(&flight, &two, Operation::Renew { id: ChargeId(1) }),
        charge(&core, &two, refund(1, 9, ChargePosition(7))),
    ];
    let readings = at_once(store.apply(NOW, &charges)).unwrap();
    assert_eq!((readings[0].refunded, readings[0].used), (3, 0));
    assert_eq!((readings[1].admission, readings[2].refunded), (Admission::Never, 0));
    assert_eq!(readings.source(), DecisionSource::Store);
    let first = &store.partitions().shards()[0].store;
    first.next([Trouble::Lost(StoreError::TimedOut)]);
    assert_eq!(at_once(store.apply(NOW, &charges)).unwrap_err(), StoreError::TimedOut);
}

/// The bug: the first error was returned. After `Unavailable`, the caller charges the call again
/// later, although the other shard may have executed its part.
#[test]
fn an_unknown_outcome_at_one_shard_was_reported_as_no_charge() {
    let failed = [Trouble::Lost(StoreError::Unavailable), Trouble::Unheard(StoreError::TimedOut)];
    for order in [[0, 1], [1, 0]] {
        let (store, users) = two_faulty();
        let (limit, subjects) = (fixed("core", 5), users.map(user));
        let charges = order.map(|shard| charge(&limit, &subjects[shard], take(1, 1)));
        for (shard, trouble) in store.partitions().shards().iter().zip(failed.clone()) {
            shard.store.next([trouble]);
        }
        assert_eq!(at_once(store.apply(NOW, &charges)).unwrap_err(), StoreError::TimedOut);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_callers_never_pass_a_limit_and_leave_nothing_held() {
    let store = Arc::new(over([(); 4].map(|()| Memory::default())));
    let (wide, narrow) = (fixed("wide", 120), fixed("narrow", 100));
    let mut callers = Vec::new();
    for id in 0..400_u128 {
        let (store, wide, narrow) = (store.clone(), wide.clone(), narrow.clone());
        callers.push(tokio::spawn(async move {
            let (one, other) = (user(0), user(1 + id as u64 % 3));
            let charges = [charge(&wide, &one, take(1, id)), charge(&narrow, &other, take(2, id))];
            store.apply(NOW, &charges).await.unwrap().all_admitted().then_some(id as u64 % 3)
        }));
    }
    let mut admitted = [0_u64; 3];
    for caller in callers {
        if let Some(other) = caller.await.unwrap() {
            admitted[other as usize] += 1;
        }
    }
    let later = NOW.after(Millis::new(1));
    let wide_used = apply_one(&*store, later, &wide, &user(0), take(0, 0)).await.unwrap().used;
    assert_eq!(wide_used, admitted.iter().sum::<u64>());
    assert!(wide_used <= 120);
    for (other, admitted) in (1..).zip(admitted) {
        let used = apply_one(&*store, later, &narrow, &user(other), take(0, 0)).await.unwrap().used;
        assert_eq!(used, 2 * admitted);
    }
    assert_eq!(store.unrefunded(), 0);
}

#[tokio::test]
async fn others_see_no_more_held_than_the_bound_and_then_nothing() {
    let (store, users) = two_faulty();
    let store = Arc::new(store);
    let (free, full) = (fixed("free", 50), fixed("full", 1));
    apply_one(&*store, NOW, &full, &user(users[1]), take(1, 0)).await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    store.partitions().shards()[1].store.usually(Trouble::Held(gate.clone()));
    let mut callers = Vec::new();
    for id in 1..=5 {
        let (store, free, full) = (store.clone(), free.clone(), full.clone());
        callers.push(tokio::spawn(async move {
            let [one, two] = users.map(user);
            let charges = [charge(&free, &one, take(3, id)), charge(&full, &two, take(1, id))];
            store.apply(NOW, &charges).await.unwrap().all_admitted()
        }));
    }
    until(|| store.partitions().shards()[1].store.calls() == 6).await;
    let used = || async {
        apply_one(&*store, NOW, &free, &user(users[0]), take(0, 0)).await.unwrap().used
    };
    assert_eq!(used().await, max_held_units(5, Cost::new(3).unwrap()));
    gate.add_permits(5);
    for caller in callers {
        assert!(!caller.await.unwrap());
    }
    assert_eq!(used().await, 0);
}

/// The client disconnects while the store decides, before and after the permit was taken.
#[tokio::test(start_paused = true)]
async fn the_permit_of_a_caller_that_stopped_waiting_is_released() {
    for is_taken in [false, true] {
        let (store, [here, _]) = two_faulty();
        let (flight, subject) = (in_flight("flight", 1), user(here));
        let gate = Arc::new(Semaphore::new(0));
        let shard = &store.partitions().shards()[0].store;
        let trouble = if is_taken { Trouble::Late } else { Trouble::Held };
        shard.next([trouble(Arc::clone(&gate))]);
        let call = apply_one(&store, NOW, &flight, &subject, take(1, 1));
        tokio::time::timeout(std::time::Duration::ZERO, call).await.expect_err("no answer");
        gate.add_permits(1);
        until(|| shard.calls() == 2).await;
        let reading = apply_one(&store, NOW, &flight, &subject, take(1, 2)).await.unwrap();
        assert_eq!((reading.admission, reading.used), (Admission::Now, 1), "{is_taken}");
    }
}
