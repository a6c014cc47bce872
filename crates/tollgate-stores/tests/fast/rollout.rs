//! Rollout between two stores by percentage. The tests check that no subject gains a window and no
//! unit is lost.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tollgate::model::Percent;
use tollgate::model::{Admission, Limit, Readings, Store, StoreError, Subject};
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::store::Memory;
use tollgate_stores::rollout::{OnMove, max_over_admission};
use tollgate_stores::{Atomic, Rollout};

use crate::faulty::{Faulty, Trouble};
use crate::setup::{
    NOW, apply_one, calls, charge, comparable, fixed, key, of_every_kind, refund, replay, take,
    user,
};

type Two<A, B> = Atomic<Rollout<A, B>>;

fn two<A, B>(percentage: &RolloutPercentage, old: A, new: B) -> Two<A, B>
where
    Rollout<A, B>: tollgate_stores::Partitions,
{
    Atomic::new(Rollout::new(&key(), percentage.clone(), old, new))
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn percent(hundredths: u8) -> Percent {
    Percent::new(hundredths).unwrap()
}

proptest! {
    /// The two stores behave like one store while both answer, even if the percentage changes at
    /// any time in both directions.
    #[test]
    fn whoever_moves_goes_on_where_it_was(
        trace in calls(7, 3), turns in prop::collection::vec(0..=100_u8, 100),
    ) {
        let (percentage, runtime) = (RolloutPercentage::new(Percent::NONE), runtime());
        let store = two(&percentage, Memory::default(), Memory::default());
        let (limits, one) = (of_every_kind(4), Memory::default());
        let mut turns = turns.into_iter();
        replay(&trace, &limits, |now, charges| {
            percentage.set(percent(turns.next().unwrap_or(50)));
            // All charges of a call have one subject, because charges over two stores may hold
            // units until they are refunded.
            let subject = charges[0].subject;
            let own: Vec<_> =
                charges.iter().filter(|charge| charge.subject == subject).copied().collect();
            let answer = runtime.block_on(store.apply(now, &own)).unwrap();
            prop_assert_eq!(comparable(&answer), comparable(&one.apply_now(now, &own).unwrap()));
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn two_stores_with_a_dial_are_a_store() {
    for hundredths in [0, 50, 100] {
        let percentage = RolloutPercentage::new(percent(hundredths));
        let store = two(&percentage, Memory::default(), Memory::default());
        tollgate_conformance::check(&store, &format!("rollout-{hundredths}")).await;
    }
}

#[tokio::test]
async fn the_share_that_moved_is_the_percentage_and_nobody_flaps() {
    let percentage = RolloutPercentage::new(Percent::NONE);
    let store = two(&percentage, Memory::default(), Memory::default());
    let users: Vec<Subject> = (0..2_000).map(user).collect();
    let moved = || users.iter().map(|user| store.partitions().is_moved(user)).collect::<Vec<_>>();
    let mut before = moved();
    for hundredths in 0..=100 {
        percentage.set(percent(hundredths));
        let after = moved();
        let back = before.iter().zip(&after).filter(|(before, after)| **before && !**after).count();
        let share = after.iter().filter(|moved| **moved).count();
        assert_eq!(back, 0, "at {hundredths}%");
        // For 2,000 fair draws, five standard deviations are at most 112.
        assert!(share.abs_diff(usize::from(hundredths) * 20) <= 112, "{share} at {hundredths}%");
        before = after;
    }
}

/// All nodes have the same percentage, which changes from 0 to 100 and back.
#[tokio::test]
async fn of_a_limit_no_more_is_admitted_through_a_ramp() {
    let (old, new) = (Arc::new(Memory::default()), Arc::new(Memory::default()));
    let percentage = RolloutPercentage::new(Percent::NONE);
    let nodes = [0, 1, 2].map(|_| two(&percentage, Arc::clone(&old), Arc::clone(&new)));
    let limit = fixed("core", 50);
    let users: Vec<Subject> = (0..40).map(user).collect();
    let mut admitted = vec![0_u64; users.len()];
    let ramp = (0..=100).chain((0..=100).rev());
    for (turn, hundredths) in ramp.enumerate() {
        percentage.set(percent(hundredths));
        for (subject, admitted) in users.iter().zip(&mut admitted) {
            let node = &nodes[(turn + *admitted as usize) % nodes.len()];
            let id = turn as u128;
            let reading = apply_one(node, NOW, &limit, subject, take(1, id)).await.unwrap();
            *admitted += u64::from(reading.admission == Admission::Now);
        }
    }
    assert!(admitted.iter().all(|units| *units == 50), "{admitted:?}");
    assert!(nodes.iter().map(|node| node.partitions().transferred()).sum::<u64>() > 0);
}

#[tokio::test]
async fn a_receipt_is_redeemed_where_its_subject_went() {
    let percentage = RolloutPercentage::new(Percent::NONE);
    let store = two(&percentage, Memory::default(), Memory::default());
    let (limit, subject) = (fixed("core", 5), user(1));
    let taken = apply_one(&store, NOW, &limit, &subject, take(3, 1)).await.unwrap();
    percentage.set(Percent::ALL);
    let back =
        apply_one(&store, NOW, &limit, &subject, refund(3, 1, taken.position)).await.unwrap();
    assert_eq!((back.refunded, back.used), (3, 0));
}

#[tokio::test]
async fn who_starts_afresh_has_a_window_more() {
    let percentage = RolloutPercentage::new(Percent::NONE);
    let stores = Rollout::new(&key(), percentage.clone(), Memory::default(), Memory::default());
    let store = Atomic::new(stores.with_on_move(OnMove::Reset));
    let (limit, subject) = (fixed("core", 5), user(1));
    apply_one(&store, NOW, &limit, &subject, take(5, 1)).await.unwrap();
    percentage.set(Percent::ALL);
    assert_eq!(
        apply_one(&store, NOW, &limit, &subject, take(5, 2)).await.unwrap().admission,
        Admission::Now
    );
    assert_eq!(store.partitions().transferred(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_report_is_asked_again_and_nobody_waits_for_it_long() {
    let percentage = RolloutPercentage::new(Percent::NONE);
    let store = two(&percentage, Faulty::new(), Memory::default());
    let (limit, subject) = (fixed("core", 5), user(1));
    apply_one(&store, NOW, &limit, &subject, take(3, 1)).await.unwrap();
    percentage.set(Percent::ALL);
    let old = store.partitions().old();
    old.next([Trouble::Lost(StoreError::Unavailable)]);
    let reading = apply_one(&store, NOW, &limit, &subject, take(1, 2)).await.unwrap();
    assert_eq!(
        (reading.used, store.partitions().failed_transfers()),
        (1, 1),
        "nothing is known of before"
    );
    old.next([Trouble::Held(Arc::new(Semaphore::new(0)))]);
    let late = apply_one(&store, NOW, &limit, &subject, take(1, 3)).await.unwrap();
    assert_eq!((late.used, store.partitions().failed_transfers()), (2, 2));
    let known = apply_one(&store, NOW, &limit, &subject, take(1, 4)).await.unwrap();
    assert_eq!(known.used, 4, "the larger of both, and one more");
}

#[tokio::test]
async fn what_nodes_that_disagree_admit_is_within_the_bound() {
    let (old, new) = (Arc::new(Memory::default()), Arc::new(Memory::default()));
    let (behind, ahead) =
        (RolloutPercentage::new(Percent::NONE), RolloutPercentage::new(Percent::ALL));
    let slow = two(&behind, Arc::clone(&old), Arc::clone(&new));
    let quick = two(&ahead, Arc::clone(&old), Arc::clone(&new));
    let (limit, subject) = (fixed("core", 10), user(1));
    let mut admitted = 0;
    for id in 0..30 {
        let node = if id % 2 == 0 { &slow } else { &quick };
        let reading = apply_one(node, NOW, &limit, &subject, take(1, id)).await.unwrap();
        admitted += u64::from(reading.admission == Admission::Now);
    }
    let bound = max_over_admission(&limit, 30, Duration::from_secs(1));
    assert_eq!(bound, 10, "never more than the limit once more");
    assert!(admitted > 10, "the disagreement bit: {admitted}");
    assert!(admitted <= 10 + bound, "{admitted}");
}

/// One request charges a subject in the old store and a subject in the new store.
#[tokio::test]
async fn a_call_on_both_sides_is_all_or_nothing() {
    let percentage = RolloutPercentage::new(percent(50));
    let store = two(&percentage, Memory::default(), Memory::default());
    let side =
        |moved| (0..).map(user).find(|user| store.partitions().is_moved(user) == moved).unwrap();
    let (here, there) = (side(false), side(true));
    let (narrow, wide) = (fixed("narrow", 1), fixed("wide", 9));
    let both = |id| [charge(&narrow, &here, take(1, id)), charge(&wide, &there, take(1, id))];
    let apply = async |id| -> Readings { store.apply(NOW, &both(id)).await.unwrap() };
    assert!(apply(1).await.all_admitted());
    assert!(!apply(2).await.all_admitted());
    let used = async |limit: &Limit, subject| {
        apply_one(&store, NOW, limit, subject, take(0, 0)).await.unwrap().used
    };
    assert_eq!((used(&narrow, &here).await, used(&wide, &there).await), (1, 1));
}
