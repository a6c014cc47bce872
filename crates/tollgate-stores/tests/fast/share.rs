//! Tests how far nodes that cannot communicate stay within a limit.

use std::num::NonZeroU32;
use std::sync::Arc;

use proptest::prelude::*;
use tollgate::model::algo::TokenBucket;
use tollgate::model::{
    Admission, Algorithm, DecisionSource, Limit, Millis, Operation, Store, StoreError, Timestamp,
};
use tollgate::store::Memory;
use tollgate_stores::{Fallback, LocalShare};

use crate::faulty::{Faulty, Trouble};
use crate::setup::{
    NOW, WINDOW, apply_one, at_once, calendar, calls, charge, fixed, in_flight, of_every_kind,
    replay, take, user,
};

fn share(nodes: u32) -> LocalShare<Memory> {
    LocalShare::new(Memory::default(), NonZeroU32::new(nodes).unwrap())
}

type Node = Fallback<Arc<Faulty>, LocalShare<Memory>>;

/// Returns a store, and a fleet of nodes on this store.
fn fleet(nodes: u32) -> (Arc<Faulty>, Vec<Node>) {
    let store = Arc::new(Faulty::new());
    let node = |_| Fallback::new(Arc::clone(&store), share(nodes));
    let nodes = (0..nodes).map(node).collect();
    (store, nodes)
}

/// Sends 200 charges of one unit, and returns how many of them are admitted. Asserts that no
/// refusal reports room for one more unit.
fn admitted(store: &impl Store, now: Timestamp, limit: &Limit) -> u64 {
    let (user, mut admitted) = (user(1), 0);
    for id in 0..200 {
        let reading = at_once(apply_one(store, now, limit, &user, take(1, 1_000 + id))).unwrap();
        if reading.admission == Admission::Now {
            admitted += 1;
        } else {
            assert!(reading.used >= limit.capacity(), "a refusal shows units that are left");
        }
    }
    admitted
}

#[test]
fn a_share_goes_on_from_what_was_last_seen_until_the_same_reset() {
    let (store, nodes) = fleet(4);
    let limit = fixed("core", 100);
    let seen = at_once(apply_one(&nodes[0], NOW, &limit, &user(1), take(60, 1))).unwrap();
    store.usually(Trouble::Lost(StoreError::Unavailable));
    let later = NOW.after(Millis::from_secs(20));
    let first = at_once(apply_one(&nodes[0], later, &limit, &user(1), take(1, 2))).unwrap();
    assert_eq!((first.admission, first.full_reset_at), (Admission::Now, seen.full_reset_at));
    let share = nodes[0].fallback_store();
    assert_eq!(share.part_of(40), 10);
    assert_eq!(first.used, 100 - 9, "nine more of this node's ten");
    assert_eq!(admitted(&nodes[0], later, &limit), 9);
    let refused = at_once(apply_one(&nodes[0], later, &limit, &user(1), take(1, 3))).unwrap();
    assert_eq!(refused.admission, Admission::At(seen.full_reset_at));
    // A node without earlier readings has a whole share. All nodes have a whole share once the
    // window has ended.
    assert_eq!(admitted(&nodes[1], later, &limit), share.part_of(100));
    assert_eq!(admitted(&nodes[0], seen.full_reset_at, &limit), share.part_of(100));
}

#[test]
fn who_was_at_the_limit_stays_there() {
    for limit in of_every_kind(20) {
        let (store, nodes) = fleet(3);
        let reading = at_once(apply_one(&nodes[0], NOW, &limit, &user(1), take(20, 1))).unwrap();
        assert_eq!(reading.admission, Admission::Now);
        store.usually(Trouble::Lost(StoreError::Unavailable));
        assert_eq!(admitted(&nodes[0], NOW, &limit), 0, "{}", limit.name());
        let fresh = reading.full_reset_at.after(WINDOW);
        assert!(admitted(&nodes[0], fresh, &limit) > 0, "{}", limit.name());
    }
}

/// The bug: a node continued from the last status only under the quota of that status. After a change
/// of the quota, such as the start of an override, the node admitted a whole share.
#[test]
fn a_status_was_not_continued_under_another_quota() {
    let (bucket, used) = (TokenBucket::new(100, WINDOW, 100).unwrap(), 60);
    let bucket = Limit::new("bucket", Algorithm::TokenBucket(bucket)).unwrap();
    // A larger bucket has no more tokens than the smaller bucket had.
    for (limit, left) in [(fixed("core", 100), 200 - used), (bucket, 100 - used)] {
        let (store, nodes) = fleet(4);
        at_once(apply_one(&nodes[0], NOW, &limit, &user(1), take(used, 1))).unwrap();
        store.usually(Trouble::Lost(StoreError::Unavailable));
        let raised = limit.with_quota(200, None).unwrap();
        let part = nodes[0].fallback_store().part_of(left);
        assert_eq!(admitted(&nodes[0], NOW, &raised), part, "{}", limit.name());
    }
}

/// Returns a token bucket with a burst of 100, and the same bucket with a burst of 200.
fn two_bursts() -> [Limit; 2] {
    [100, 200].map(|burst| {
        let bucket = TokenBucket::new(burst, WINDOW, burst).unwrap();
        Limit::new("bucket", Algorithm::TokenBucket(bucket)).unwrap()
    })
}

/// The bug: a request with a smaller quota consumed the last status. The usage that exceeds this quota
/// was then unknown to requests with a larger quota.
#[test]
fn a_smaller_quota_consumed_the_status_of_a_larger_quota() {
    let windows = [fixed("core", 100), fixed("core", 200)];
    // 50 units of the larger quota are left, or 150 tokens.
    for ([small, large], used, left) in [(windows, 150, 50), (two_bursts(), 50, 150)] {
        let (store, nodes) = fleet(4);
        at_once(apply_one(&nodes[0], NOW, &large, &user(1), take(used, 1))).unwrap();
        store.usually(Trouble::Lost(StoreError::Unavailable));
        for id in 2..4 {
            at_once(apply_one(&nodes[0], NOW, &small, &user(1), take(101, id))).unwrap();
        }
        let part = nodes[0].fallback_store().part_of(left);
        assert_eq!(admitted(&nodes[0], NOW, &large), part, "{}", large.name());
    }
}

/// The bug: a refused charge on a smaller bucket, which was full, removed the status of a larger
/// bucket.
#[test]
fn a_full_smaller_bucket_removed_the_status_of_a_larger_bucket() {
    let (store, nodes) = fleet(4);
    let [small, large] = two_bursts();
    at_once(apply_one(&nodes[0], NOW, &large, &user(1), take(50, 1))).unwrap();
    at_once(apply_one(&nodes[0], NOW, &small, &user(1), take(101, 2))).unwrap();
    store.usually(Trouble::Lost(StoreError::Unavailable));
    assert_eq!(admitted(&nodes[0], NOW, &large), nodes[0].fallback_store().part_of(150));
}

/// The bug: the share used up the tokens that a bucket had regained since the last status.
#[test]
fn the_tokens_that_arrived_since_the_last_status_were_used_up() {
    let (store, nodes) = fleet(1);
    let [bucket, _] = two_bursts();
    let at = |seconds| NOW.after(Millis::from_secs(seconds));
    let take_at = |seconds, cost| {
        at_once(apply_one(&nodes[0], at(seconds), &bucket, &user(1), take(cost, 1))).unwrap()
    };
    assert_eq!(take_at(0, 100).used, 100);
    store.usually(Trouble::Lost(StoreError::Unavailable));
    assert_eq!(admitted(&nodes[0], at(30), &bucket), 50);
    store.usually(Trouble::None);
    assert_eq!(take_at(30, 1).used, 100);
    store.usually(Trouble::Lost(StoreError::Unavailable));
    assert_eq!(admitted(&nodes[0], at(59), &bucket), 48, "the share has a state");
}

/// The bug: a reset removed only the last status under the quota of the reset.
#[test]
fn a_reset_kept_the_status_under_another_quota() {
    let (store, nodes) = fleet(4);
    let limit = fixed("core", 100);
    let raised = limit.with_quota(200, None).unwrap();
    at_once(apply_one(&nodes[0], NOW, &raised, &user(1), take(200, 1))).unwrap();
    at_once(apply_one(&nodes[0], NOW, &limit, &user(1), Operation::Reset)).unwrap();
    store.usually(Trouble::Lost(StoreError::Unavailable));
    assert_eq!(admitted(&nodes[0], NOW, &raised), nodes[0].fallback_store().part_of(200));
}

#[test]
fn what_no_share_can_hold_is_refused_for_a_while_and_not_for_ever() {
    let share = share(4);
    let limit = fixed("core", 100);
    let admission =
        |cost| at_once(apply_one(&share, NOW, &limit, &user(1), take(cost, 1))).unwrap().admission;
    assert_eq!(admission(26), Admission::At(NOW.after(WINDOW)));
    assert_eq!(admission(101), Admission::Never);
    assert_eq!(admission(25), Admission::Now);
}

#[test]
fn an_outage_does_not_give_the_same_part_twice() {
    let (store, nodes) = fleet(2);
    let limit = fixed("core", 100);
    let mut local = 0;
    at_once(apply_one(&nodes[0], NOW, &limit, &user(1), take(1, 0))).unwrap();
    for round in 1..=10 {
        store.usually(Trouble::Lost(StoreError::TimedOut));
        for id in 0..10 {
            let reading =
                at_once(apply_one(&nodes[0], NOW, &limit, &user(1), take(1, round * 100 + id)))
                    .unwrap();
            local += u64::from(reading.admission == Admission::Now);
        }
        store.usually(Trouble::None);
        at_once(apply_one(&nodes[0], NOW, &limit, &user(1), take(1, round))).unwrap();
    }
    assert!(local > 0 && local <= nodes[0].fallback_store().part_of(100), "{local}");
}

#[test]
fn leases_of_the_other_store_count_until_they_would_have_ended() {
    let (store, nodes) = fleet(2);
    let limit = in_flight("flight", 10);
    at_once(apply_one(&nodes[0], NOW, &limit, &user(1), take(6, 1))).unwrap();
    store.usually(Trouble::Lost(StoreError::Unavailable));
    assert_eq!(admitted(&nodes[0], NOW, &limit), nodes[0].fallback_store().part_of(4));
}

proptest! {
    #[test]
    fn a_fleet_that_is_cut_off_stays_within_the_bound(
        size in 1..6_u32,
        quota in 1..40_u64,
        before in calls(7, 1),
        wait in 0..70_000_u64,
    ) {
        let limits = of_every_kind(quota);
        let (store, nodes) = fleet(size);
        let mut now = NOW;
        let mut turn = nodes.iter().cycle();
        replay(&before, &limits, |at, charges| {
            now = at;
            prop_assert!(at_once(turn.next().unwrap().apply(at, charges)).is_ok());
            Ok(())
        })?;
        store.usually(Trouble::Lost(StoreError::Unavailable));
        now = now.after(Millis::new(wait));
        for limit in &limits {
            let together: u64 = nodes.iter().map(|node| admitted(node, now, limit)).sum();
            let bound = nodes[0].fallback_store().max_admitted_units(limit);
            prop_assert!(together <= bound, "{}: {together} of {bound}", limit.name());
            prop_assert!(bound <= quota.max(u64::from(size)));
            // No more units are admitted in the rest of the window.
            if limit.name() == "fixed" {
                prop_assert_eq!(admitted(&nodes[0], now, limit), 0);
            }
        }
    }

    #[test]
    fn one_node_goes_on_exactly_where_its_store_stopped(trace in calls(2, 3), stop: prop::sample::Index) {
        // A single node has the whole limit as its share, so the node admits as many units as its
        // store would admit.
        let limits = [calendar("fixed", 4), fixed("anchored", 4)];
        let (store, nodes) = fleet(1);
        let twin = Memory::default();
        let stop = stop.index(trace.len());
        let mut index = 0;
        replay(&trace, &limits, |now, charges| {
            if index == stop {
                store.usually(Trouble::Lost(StoreError::Unavailable));
            }
            index += 1;
            let answer = at_once(nodes[0].apply(now, charges)).unwrap();
            let exact = twin.apply_now(now, charges).unwrap();
            let status = |reading: &tollgate::model::Reading| (reading.admission, reading.used, reading.full_reset_at);
            prop_assert_eq!(
                answer.iter().map(status).collect::<Vec<_>>(),
                exact.iter().map(status).collect::<Vec<_>>()
            );
            Ok(())
        })?;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_callers_take_over_once() {
    for round in 0..20 {
        let (store, mut nodes) = fleet(4);
        let node = Arc::new(nodes.remove(0));
        let limit = fixed("core", 400);
        apply_one(&*node, NOW, &limit, &user(1), take(200, 0)).await.unwrap();
        store.usually(Trouble::Lost(StoreError::Unavailable));
        let mut callers = Vec::new();
        for id in 0..100 {
            let (node, limit) = (Arc::clone(&node), limit.clone());
            callers.push(tokio::spawn(async move {
                let subject = user(1);
                let readings = node.apply(NOW, &[charge(&limit, &subject, take(1, 1 + id))]).await;
                let readings = readings.unwrap();
                assert_eq!(readings.source(), DecisionSource::Fallback(StoreError::Unavailable));
                u64::from(readings.all_admitted())
            }));
        }
        let mut admitted = 0;
        for caller in callers {
            admitted += caller.await.unwrap();
        }
        assert_eq!(admitted, node.fallback_store().part_of(200), "round {round}");
    }
}
