//! What is given back and forgotten while subjects move between two stores.

use std::sync::Arc;

use proptest::prelude::*;
use tokio::runtime::Builder;
use tollgate::core::{Ask, Cost, Fit, Mark, Store, StoreError, Subject};
use tollgate::store::rollout::{DEFAULT_CARRY, OnMove};
use tollgate::store::{Atomic, Dial, Memory, Percent, Rollout};

use crate::faulty::{Faulty, Trouble};
use crate::give_back::{as_one_memory, limits, once, steps};
use crate::setup::{NOW, WINDOW, ask, fixed, in_flight, key, refund, take, user};

/// Nodes with one dial, which remember few whom they brought along.
fn nodes<A: Store, B: Store>(
    dial: &Dial,
    (old, new): (&Arc<A>, &Arc<B>),
) -> [Atomic<Rollout<Arc<A>, Arc<B>>>; 4]
where
    Rollout<Arc<A>, Arc<B>>: tollgate::store::Homes,
{
    [(); 4].map(|()| {
        let stores = Rollout::new(&key(), dial.clone(), Arc::clone(old), Arc::clone(new));
        Atomic::new(stores.with_arrivals(8, DEFAULT_CARRY))
    })
}

proptest! {
    /// A dial that is turned at any time, forth and back: one memory.
    #[test]
    fn what_is_given_back_and_forgotten_is_so_at_every_node(
        trace in steps(3), turns in prop::collection::vec((0..6_u8, 0..=100_u8), 80),
    ) {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let dial = Dial::new(Percent::NONE);
        let nodes = nodes(&dial, (&Arc::<Memory>::default(), &Arc::<Memory>::default()));
        let users: Vec<Subject> = (0..3).map(user).collect();
        // Which receipts came before is not carried.
        let trace = once(&trace);
        as_one_memory(&trace, &limits(), &users, |number, step, now, charge| {
            if let (0, percent) = turns[number] {
                dial.set(Percent::new(percent).unwrap());
            }
            runtime.block_on(nodes[step.node].apply(now, &[*charge])).unwrap()[0]
        })?;
    }
}

/// Both ways: the dial is turned to all, or back to nobody.
#[tokio::test]
async fn what_one_node_gave_back_or_forgot_no_other_brings_along() {
    for to in [Percent::ALL, Percent::NONE] {
        let dial = Dial::new(if to == Percent::ALL { Percent::NONE } else { Percent::ALL });
        let nodes = nodes(&dial, (&Arc::<Memory>::default(), &Arc::<Memory>::default()));
        let (flight, core, subject) = (in_flight("flight", 1), fixed("core", 5), user(1));
        ask(&nodes[0], NOW, &flight, &subject, take(1, 1)).await.unwrap();
        ask(&nodes[0], NOW, &core, &subject, take(5, 1)).await.unwrap();
        dial.set(to);
        ask(&nodes[1], NOW, &flight, &subject, refund(1, 1, Mark(0))).await.unwrap();
        ask(&nodes[1], NOW, &core, &subject, Ask::Forget).await.unwrap();
        for limit in [&flight, &core] {
            let look = Ask::Look { cost: Cost::ONE };
            assert_eq!(ask(&nodes[2], NOW, limit, &subject, look).await.unwrap().used, 0);
            let taken = ask(&nodes[3], NOW, limit, &subject, take(1, 2)).await.unwrap();
            assert_eq!((taken.fit, taken.used), (Fit::Now, 1));
        }
    }
}

#[tokio::test]
async fn what_the_other_store_does_not_hear_of_is_held_back_and_forgetting_fails() {
    let dial = Dial::new(Percent::NONE);
    let (old, new) = (Arc::new(Faulty::new()), Arc::<Memory>::default());
    let nodes = nodes(&dial, (&old, &new));
    let (limit, subject) = (in_flight("flight", 1), user(1));
    ask(&nodes[0], NOW, &limit, &subject, take(1, 1)).await.unwrap();
    dial.set(Percent::ALL);
    ask(&nodes[1], NOW, &limit, &subject, take(0, 0)).await.unwrap();
    let lost = || Trouble::Lost(StoreError::Unavailable);
    old.next([lost()]);
    let forgets = ask(&nodes[1], NOW, &limit, &subject, Ask::Forget).await;
    assert_eq!(forgets.unwrap_err(), StoreError::Unavailable);
    old.next([lost()]);
    let back = ask(&nodes[1], NOW, &limit, &subject, refund(1, 1, Mark(0))).await.unwrap();
    assert_eq!((back.given_back, nodes[1].homes().given_back_at_one()), (1, 1));
    assert_ne!(ask(&nodes[2], NOW, &limit, &subject, take(1, 2)).await.unwrap().fit, Fit::Now);
    let over = NOW.after(WINDOW);
    assert_eq!(ask(&nodes[2], over, &limit, &subject, take(1, 3)).await.unwrap().fit, Fit::Now);
}

/// Who starts afresh brings nothing along: the other store is not asked.
#[tokio::test]
async fn where_nothing_is_brought_along_one_store_is_asked() {
    let dial = Dial::new(Percent::ALL);
    let (old, new) = (Faulty::new(), Memory::default());
    let stores = Rollout::new(&key(), dial, old, new).with_on_move(OnMove::StartAfresh);
    let store = Atomic::new(stores);
    ask(&store, NOW, &fixed("core", 5), &user(1), Ask::Forget).await.unwrap();
    assert_eq!(store.homes().old().calls(), 0);
}
