//! Refunds and resets while subjects move between shards.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tollgate::model::{
    Admission, CellKey, CellTransfer, ChargeId, ChargePosition, Cost, Deduplication, Millis,
    Operation, StoreError, Subject, assess,
};
use tollgate_stores::rebalance::Phase;
use tollgate_stores::rollout::DEFAULT_TRANSFER_TIME;
use tollgate_stores::{Atomic, Rebalance};

use crate::faulty::{Faulty, Trouble};
use crate::give_back::{Deed, as_one_memory, limits, once, steps};
use crate::rebalance::{Fleet, Two, mover};
use crate::setup::{NOW, WINDOW, apply_one, fixed, in_flight, refund, take, until, user};

proptest! {
    /// Nodes in neighbouring phases behave like one memory store, even if some nodes forget which
    /// subjects they transferred.
    #[test]
    fn what_is_given_back_and_forgotten_is_so_at_every_node(
        trace in steps(3), lead_at in 0..60_usize, some_know_old in any::<bool>(),
    ) {
        let (fleet, runtime) =
            (Fleet::new(), Builder::new_current_thread().enable_time().build().unwrap());
        let old = Atomic::new(fleet.before());
        let nodes = [fleet.node(), fleet.node(), fleet.node(), fleet.node()];
        let nodes = nodes.map(|node| node.with_transfer_entries(8, DEFAULT_TRANSFER_TIME));
        let mut movers = (0..).map(user).filter(|user| nodes[0].moves(user));
        let stays = (0..).map(user).find(|user| !nodes[0].moves(user)).unwrap();
        let users: Vec<Subject> = movers.by_ref().take(2).chain([stays]).collect();
        // An owner that has no record of a charge does not record the refund of this charge, so
        // each receipt is used only once.
        let trace = if some_know_old { once(&trace) } else { trace };
        as_one_memory(&trace, &limits(), &users, |number, step, now, charge| {
            if number >= lead_at {
                // The first node stays in the dual-write phase.
                nodes[1..].iter().for_each(|node| node.enter(Phase::Cutover));
            }
            // Refunds through a node that uses only the old map never reach the new owner.
            let takes = matches!(step.deed, Deed::Take(_));
            let knows_old = some_know_old && takes && step.node == 3 && number < lead_at;
            let single = [*charge];
            runtime.block_on(async {
                match knows_old {
                    true => tollgate::model::Store::apply(&old, now, &single).await,
                    false => tollgate::model::Store::apply(&nodes[step.node], now, &single).await,
                }
            }).unwrap()[0]
        })?;
    }
}

/// A node that uses only the old map charged the old owner alone, and later a node in cutover charged
/// the new owner alone. A wrapper around the rebalance reads the cells of the subject.
#[tokio::test]
async fn cells_contain_the_charges_of_both_owners() {
    let two = Two::new();
    let (behind, ahead, only_old) = (two.node(), two.node(), Atomic::new(two.before()));
    let (limit, subject) = (fixed("core", 10), mover(&ahead));
    apply_one(&behind, NOW, &limit, &subject, take(1, 1)).await.unwrap();
    apply_one(&only_old, NOW, &limit, &subject, take(2, 2)).await.unwrap();
    ahead.enter(Phase::Cutover);
    let cell_keys = [CellKey { limit: &limit, subject: &subject }];
    let used = async |node: &Rebalance<Faulty>| {
        let cells = node.cells(NOW, &cell_keys).await.unwrap();
        assess(cells[0].as_ref(), &limit, Cost::PEEK, NOW).used
    };
    assert_eq!((used(&ahead).await, used(&behind).await), (3, 3));
    apply_one(&ahead, NOW, &limit, &subject, take(4, 3)).await.unwrap();
    assert_eq!((used(&ahead).await, used(&behind).await), (7, 7));
    two.new.next([Trouble::Lost(StoreError::Unavailable)]);
    assert_eq!(used(&behind).await, 3, "in dual write, the new owner need not answer");
}

/// The new owner has not received a refund, and refuses a charge. A node in dual write undoes this
/// charge at the old owner while a node with only the old map charges the old owner.
#[tokio::test]
async fn an_undone_charge_takes_no_other_charge_along() {
    let two = Two::new();
    let (behind, only_old) = (two.node(), Atomic::new(two.before()));
    let (limit, subject) = (fixed("core", 2), mover(&behind));
    let taken = apply_one(&behind, NOW, &limit, &subject, take(2, 1)).await.unwrap();
    apply_one(&only_old, NOW, &limit, &subject, refund(2, 1, taken.position)).await.unwrap();
    let later = NOW.after(Millis::from_secs(1));
    let gate = Arc::new(Semaphore::new(0));
    two.old.next([Trouble::None, Trouble::Held(Arc::clone(&gate))]);
    let calls = two.old.calls();
    let mut admitted = 0;
    let meanwhile = async {
        until(|| two.old.calls() == calls + 2).await;
        let other = apply_one(&only_old, later, &limit, &subject, take(1, 3)).await.unwrap();
        admitted += u64::from(other.admission == Admission::Now);
        gate.add_permits(1);
    };
    let (refused, ()) =
        tokio::join!(apply_one(&behind, later, &limit, &subject, take(1, 2)), meanwhile);
    admitted += u64::from(refused.unwrap().admission == Admission::Now);
    for id in 4..8 {
        let other = apply_one(&only_old, later, &limit, &subject, take(1, id)).await.unwrap();
        admitted += u64::from(other.admission == Admission::Now);
    }
    assert_eq!(admitted, 2);
}

/// The phases of three nodes, in combinations that can occur. The last node has not received a call
/// on the subject.
const PHASES: [[Phase; 3]; 5] = [
    [Phase::DualWrite, Phase::DualWrite, Phase::DualWrite],
    [Phase::DualWrite, Phase::DualWrite, Phase::Cutover],
    [Phase::DualWrite, Phase::Cutover, Phase::Cutover],
    [Phase::DualWrite, Phase::Cutover, Phase::DualWrite],
    [Phase::Cutover, Phase::Cutover, Phase::Cutover],
];

#[tokio::test]
async fn a_lease_that_was_refunded_is_free_whoever_is_asked() {
    for phases in PHASES {
        let fleet = Fleet::new();
        let nodes = phases.map(|_| fleet.node());
        let (limit, subject) = (in_flight("flight", 1), mover(&nodes[0]));
        apply_one(&nodes[0], NOW, &limit, &subject, take(1, 1)).await.unwrap();
        nodes.iter().zip(phases).for_each(|(node, phase)| node.enter(phase));
        let back = apply_one(&nodes[1], NOW, &limit, &subject, refund(1, 1, ChargePosition(0)))
            .await
            .unwrap();
        assert_eq!((back.refunded, back.used), (1, 0), "{phases:?}");
        let look = Operation::Peek { cost: Cost::ONE };
        assert_eq!(apply_one(&nodes[2], NOW, &limit, &subject, look).await.unwrap().used, 0);
        for (id, node) in (2..).zip(&nodes) {
            let again = apply_one(node, NOW, &limit, &subject, take(1, id)).await.unwrap();
            assert_eq!(again.admission, Admission::Now, "{phases:?}");
            apply_one(node, NOW, &limit, &subject, refund(1, id, again.position)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn what_was_forgotten_stays_so_whoever_is_asked() {
    for phases in PHASES {
        let fleet = Fleet::new();
        let nodes = phases.map(|_| fleet.node());
        let (limit, subject) = (fixed("core", 5), mover(&nodes[0]));
        apply_one(&nodes[0], NOW, &limit, &subject, take(5, 1)).await.unwrap();
        nodes.iter().zip(phases).for_each(|(node, phase)| node.enter(phase));
        apply_one(&nodes[1], NOW, &limit, &subject, Operation::Reset).await.unwrap();
        let afresh = apply_one(&nodes[2], NOW, &limit, &subject, take(5, 2)).await.unwrap();
        assert_eq!((afresh.admission, afresh.used), (Admission::Now, 5), "{phases:?}");
    }
}

#[tokio::test]
async fn who_cannot_forget_at_both_owners_says_so() {
    let lost = || Trouble::Lost(StoreError::Unavailable);
    for phase in [Phase::DualWrite, Phase::Cutover] {
        for at_new in [false, true] {
            let two = Two::new();
            let node = two.node();
            let (limit, subject) = (fixed("core", 5), mover(&node));
            apply_one(&node, NOW, &limit, &subject, take(3, 1)).await.unwrap();
            node.enter(phase);
            apply_one(&node, NOW, &limit, &subject, take(1, 2)).await.unwrap();
            let troubled = if at_new { &two.new } else { &two.old };
            troubled.next([lost()]);
            let result = apply_one(&node, NOW, &limit, &subject, Operation::Reset).await;
            assert_eq!(result.unwrap_err(), StoreError::Unavailable, "{phase:?}");
            apply_one(&node, NOW, &limit, &subject, Operation::Reset).await.unwrap();
            let (meets, take) = (two.node(), take(5, 3));
            meets.enter(phase);
            let afresh = apply_one(&meets, NOW, &limit, &subject, take).await.unwrap();
            assert_eq!((afresh.admission, afresh.used), (Admission::Now, 5), "{phase:?}");
        }
    }
}

/// A refund that one owner does not receive may still count as used at that owner, but only until
/// the window ends.
#[tokio::test(start_paused = true)]
async fn what_one_owner_alone_gave_back_may_count_until_it_is_over() {
    let unanswered =
        [Trouble::Lost(StoreError::Unavailable), Trouble::Held(Arc::new(Semaphore::new(0)))];
    for trouble in unanswered {
        let two = Two::new();
        let (node, meets) = (two.node(), two.node());
        let (limit, subject) = (in_flight("flight", 1), mover(&node));
        apply_one(&node, NOW, &limit, &subject, take(1, 1)).await.unwrap();
        [&node, &meets].iter().for_each(|node| node.enter(Phase::Cutover));
        apply_one(&node, NOW, &limit, &subject, take(0, 0)).await.unwrap();
        two.old.next([trouble]);
        let began = Instant::now();
        let back =
            apply_one(&node, NOW, &limit, &subject, refund(1, 1, ChargePosition(0))).await.unwrap();
        assert_eq!((back.refunded, back.used, node.diverged()), (1, 0, 1));
        assert!(began.elapsed() <= DEFAULT_TRANSFER_TIME + Duration::from_millis(1));
        let held_back = apply_one(&meets, NOW, &limit, &subject, take(1, 2)).await.unwrap();
        assert_eq!((held_back.admission == Admission::Now, held_back.used), (false, 1));
        let over = NOW.after(WINDOW);
        assert_eq!(
            apply_one(&meets, over, &limit, &subject, take(1, 3)).await.unwrap().admission,
            Admission::Now
        );
    }
}

/// If an old owner could not be read, that owner keeps all of its usage.
#[tokio::test]
async fn nothing_is_refunded_at_an_owner_whose_subjects_have_not_arrived() {
    let two = Two::new();
    let node = two.node();
    let (limit, subject) = (fixed("core", 9), mover(&node));
    apply_one(node.before(), NOW, &limit, &subject, take(4, 1)).await.unwrap();
    node.enter(Phase::Cutover);
    let lost = || Trouble::Lost(StoreError::Unavailable);
    two.old.next([lost()]);
    let taken = apply_one(&node, NOW, &limit, &subject, take(3, 2)).await.unwrap();
    two.old.next([lost()]);
    let back = apply_one(&node, NOW, &limit, &subject, refund(3, 2, taken.position)).await.unwrap();
    assert_eq!((back.used, node.diverged(), node.failed_transfers()), (0, 1, 2));
    assert_eq!(apply_one(&node, NOW, &limit, &subject, take(0, 3)).await.unwrap().used, 4);
}

/// The new owner refuses a charge that the old owner admitted, and the old owner does not answer
/// the refund.
#[tokio::test]
async fn owners_that_could_not_be_made_equal_are_counted_as_diverged() {
    let two = Two::new();
    let node = two.node();
    let (limit, subject) = (fixed("core", 5), mover(&node));
    node.enter(Phase::DualWrite);
    apply_one(&node, NOW, &limit, &subject, take(3, 1)).await.unwrap();
    apply_one(&two.new, NOW, &limit, &subject, take(2, 2)).await.unwrap();
    two.old.next([Trouble::None, Trouble::Lost(StoreError::Unavailable)]);
    let refused = apply_one(&node, NOW, &limit, &subject, take(1, 3)).await.unwrap();
    assert!(refused.admission != Admission::Now);
    assert_eq!(node.diverged(), 1);
    let old = apply_one(&two.old, NOW, &limit, &subject, take(0, 4)).await.unwrap();
    assert_eq!(old.used, 4, "it still counts the refused unit");
}

/// In dual write, a refund is sent to the new owner even if the old owner does not answer.
#[tokio::test]
async fn both_owners_are_asked_whatever_one_of_them_answers() {
    let two = Two::new();
    let node = two.node();
    let (limit, subject) = (in_flight("flight", 1), mover(&node));
    apply_one(&node, NOW, &limit, &subject, take(1, 1)).await.unwrap();
    two.old.next([Trouble::Unheard(StoreError::TimedOut)]);
    let back = apply_one(&node, NOW, &limit, &subject, refund(1, 1, ChargePosition(0))).await;
    assert_eq!(back.unwrap_err(), StoreError::TimedOut);
    assert_eq!(
        apply_one(&node, NOW, &limit, &subject, take(1, 2)).await.unwrap().admission,
        Admission::Now
    );
}

#[tokio::test]
async fn a_repeated_receipt_gives_back_once_through_every_node() {
    for phases in PHASES {
        let fleet = Fleet::new();
        let nodes = phases.map(|_| fleet.node());
        let (limit, subject) = (fixed("core", 9), mover(&nodes[0]));
        apply_one(&nodes[0], NOW, &limit, &subject, take(4, 1)).await.unwrap();
        let position =
            apply_one(&nodes[0], NOW, &limit, &subject, take(3, 2)).await.unwrap().position;
        nodes.iter().zip(phases).for_each(|(node, phase)| node.enter(phase));
        let (cost, id, deduplication) = (Cost::new(3).unwrap(), ChargeId(2), Deduplication::ById);
        let back = Operation::Refund { cost, position, id, deduplication };
        for (node, refunded) in [(1, 3), (2, 0), (0, 0), (1, 0)] {
            let result = apply_one(&nodes[node], NOW, &limit, &subject, back).await.unwrap();
            assert_eq!((result.refunded, result.used), (refunded, 4), "{phases:?}");
        }
    }
}
