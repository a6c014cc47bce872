//! Refunds and resets while subjects move between two stores.

use std::sync::Arc;

use proptest::prelude::*;
use tokio::runtime::Builder;
use tollgate::model::Percent;
use tollgate::model::{Admission, ChargePosition, Cost, Operation, Store, StoreError, Subject};
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::store::Memory;
use tollgate_stores::rollout::{DEFAULT_TRANSFER_TIME, OnMove};
use tollgate_stores::{Atomic, Rollout};

use crate::faulty::{Faulty, Trouble};
use crate::give_back::{as_one_memory, limits, once, steps};
use crate::setup::{NOW, WINDOW, apply_one, fixed, in_flight, key, refund, take, user};

/// Returns nodes with the same percentage. The nodes remember few of the subjects that they
/// transferred.
fn nodes<A: Store, B: Store>(
    percentage: &RolloutPercentage,
    (old, new): (&Arc<A>, &Arc<B>),
) -> [Atomic<Rollout<Arc<A>, Arc<B>>>; 4]
where
    Rollout<Arc<A>, Arc<B>>: tollgate_stores::Partitions,
{
    [(); 4].map(|()| {
        let stores = Rollout::new(&key(), percentage.clone(), Arc::clone(old), Arc::clone(new));
        Atomic::new(stores.with_transfer_entries(8, DEFAULT_TRANSFER_TIME))
    })
}

proptest! {
    /// The two stores behave like one memory store, even if the percentage changes at any time in
    /// both directions.
    #[test]
    fn what_is_given_back_and_forgotten_is_so_at_every_node(
        trace in steps(3), turns in prop::collection::vec((0..6_u8, 0..=100_u8), 80),
    ) {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let percentage = RolloutPercentage::new(Percent::NONE);
        let nodes = nodes(&percentage, (&Arc::<Memory>::default(), &Arc::<Memory>::default()));
        let users: Vec<Subject> = (0..3).map(user).collect();
        // The record of redeemed receipts is not transferred, so each receipt is used once.
        let trace = once(&trace);
        as_one_memory(&trace, &limits(), &users, |number, step, now, charge| {
            if let (0, percent) = turns[number] {
                percentage.set(Percent::new(percent).unwrap());
            }
            runtime.block_on(nodes[step.node].apply(now, &[*charge])).unwrap()[0]
        })?;
    }
}

/// Tests both directions: the percentage changes to 100, or back to 0.
#[tokio::test]
async fn what_one_node_gave_back_or_forgot_no_other_brings_along() {
    for to in [Percent::ALL, Percent::NONE] {
        let percentage =
            RolloutPercentage::new(if to == Percent::ALL { Percent::NONE } else { Percent::ALL });
        let nodes = nodes(&percentage, (&Arc::<Memory>::default(), &Arc::<Memory>::default()));
        let (flight, core, subject) = (in_flight("flight", 1), fixed("core", 5), user(1));
        apply_one(&nodes[0], NOW, &flight, &subject, take(1, 1)).await.unwrap();
        apply_one(&nodes[0], NOW, &core, &subject, take(5, 1)).await.unwrap();
        percentage.set(to);
        apply_one(&nodes[1], NOW, &flight, &subject, refund(1, 1, ChargePosition(0)))
            .await
            .unwrap();
        apply_one(&nodes[1], NOW, &core, &subject, Operation::Reset).await.unwrap();
        for limit in [&flight, &core] {
            let look = Operation::Peek { cost: Cost::ONE };
            assert_eq!(apply_one(&nodes[2], NOW, limit, &subject, look).await.unwrap().used, 0);
            let taken = apply_one(&nodes[3], NOW, limit, &subject, take(1, 2)).await.unwrap();
            assert_eq!((taken.admission, taken.used), (Admission::Now, 1));
        }
    }
}

#[tokio::test]
async fn what_the_other_store_does_not_hear_of_is_held_back_and_forgetting_fails() {
    let percentage = RolloutPercentage::new(Percent::NONE);
    let (old, new) = (Arc::new(Faulty::new()), Arc::<Memory>::default());
    let nodes = nodes(&percentage, (&old, &new));
    let (limit, subject) = (in_flight("flight", 1), user(1));
    apply_one(&nodes[0], NOW, &limit, &subject, take(1, 1)).await.unwrap();
    percentage.set(Percent::ALL);
    apply_one(&nodes[1], NOW, &limit, &subject, take(0, 0)).await.unwrap();
    let lost = || Trouble::Lost(StoreError::Unavailable);
    old.next([lost()]);
    let forgets = apply_one(&nodes[1], NOW, &limit, &subject, Operation::Reset).await;
    assert_eq!(forgets.unwrap_err(), StoreError::Unavailable);
    old.next([lost()]);
    let back =
        apply_one(&nodes[1], NOW, &limit, &subject, refund(1, 1, ChargePosition(0))).await.unwrap();
    assert_eq!((back.refunded, nodes[1].partitions().unconfirmed_refunds()), (1, 1));
    assert_ne!(
        apply_one(&nodes[2], NOW, &limit, &subject, take(1, 2)).await.unwrap().admission,
        Admission::Now
    );
    let over = NOW.after(WINDOW);
    assert_eq!(
        apply_one(&nodes[2], over, &limit, &subject, take(1, 3)).await.unwrap().admission,
        Admission::Now
    );
}

/// With `OnMove::Reset`, nothing is transferred and the other store is not called.
#[tokio::test]
async fn where_nothing_is_brought_along_one_store_is_asked() {
    let percentage = RolloutPercentage::new(Percent::ALL);
    let (old, new) = (Faulty::new(), Memory::default());
    let stores = Rollout::new(&key(), percentage, old, new).with_on_move(OnMove::Reset);
    let store = Atomic::new(stores);
    apply_one(&store, NOW, &fixed("core", 5), &user(1), Operation::Reset).await.unwrap();
    assert_eq!(store.partitions().old().calls(), 0);
}
