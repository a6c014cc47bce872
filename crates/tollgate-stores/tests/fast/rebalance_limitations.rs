//! The units that a move between shards may admit above a limit, compared with one store.

use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::{
    Admission, Algorithm, ChargeId, Cost, Deduplication, Limit, Millis, Operation, Refusals, Store,
    Subject, Timestamp,
};
use tollgate::store::Memory;
use tollgate_stores::Atomic;
use tollgate_stores::rebalance::Phase;

use crate::rebalance::{Two, mover};
use crate::setup::{NOW, apply_one, fixed, refund, take};

const QUOTA: u64 = 10;

/// Returns the units that `store` admits at `now` until it refuses.
async fn admitted(store: &impl Store, now: Timestamp, limit: &Limit, subject: &Subject) -> u64 {
    for (units, id) in (0..).zip(1_000..) {
        let reading = apply_one(store, now, limit, subject, take(1, id)).await.unwrap();
        if reading.admission != Admission::Now {
            return units;
        }
    }
    unreachable!()
}

/// The policy has windows of a minute, and a caller sends a rate with a window of an hour. The node
/// is in cutover for the longest lifetime of a counter of the policy.
#[tokio::test]
async fn a_counter_that_outlives_the_cutover_costs_a_quiet_subject_s_limit_once() {
    let hour = FixedWindow::new(QUOTA, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    let (of_policy, sent) =
        (fixed("core", QUOTA), Limit::new("sent", Algorithm::FixedWindow(hour)).unwrap());
    let lifetime = of_policy.cell_lifetime().get() + of_policy.skew_tolerance().get();
    let later = NOW.after(Millis::new(lifetime));
    // The limit, the phase in which the subject makes a request, and the units above the limit.
    let cases = [
        (&of_policy, None, 0),
        (&sent, Some(Phase::DualWrite), 0),
        (&sent, Some(Phase::Cutover), 0),
        (&sent, None, QUOTA),
    ];
    for (limit, requests_in, above) in cases {
        let two = Two::new();
        let (node, one) = (two.node(), Memory::default());
        let (only_old, subject) = (Atomic::new(two.before()), mover(&node));
        assert_eq!(admitted(&only_old, NOW, limit, &subject).await, QUOTA);
        assert_eq!(admitted(&one, NOW, limit, &subject).await, QUOTA);
        for phase in [Phase::DualWrite, Phase::Cutover] {
            node.enter(phase);
            if requests_in == Some(phase) {
                let reading = apply_one(&node, NOW, limit, &subject, take(1, 1)).await.unwrap();
                assert_ne!(reading.admission, Admission::Now);
            }
        }
        node.enter(Phase::Done);
        let exact = admitted(&one, later, limit, &subject).await;
        let found = admitted(&node, later, limit, &subject).await;
        assert_eq!(found - exact, above, "{}, {requests_in:?}", limit.name());
        assert_eq!(admitted(&node, later, limit, &subject).await, 0, "the limit once");
    }
}

/// A node that uses only the old map made a charge and refunded it. The new shard never had the
/// charge, and a node in the move refunds the receipt again.
#[tokio::test]
async fn a_receipt_that_one_shard_never_had_is_refunded_twice_and_not_more_often() {
    const COST: u64 = 3;
    for phase in [Phase::DualWrite, Phase::Cutover, Phase::Done] {
        let two = Two::new();
        let (only_old, ahead, again) = (Atomic::new(two.before()), two.node(), two.node());
        let (limit, subject) = (fixed("core", QUOTA), mover(&ahead));
        apply_one(&only_old, NOW, &limit, &subject, take(4, 1)).await.unwrap();
        let charged = apply_one(&only_old, NOW, &limit, &subject, take(COST, 2)).await.unwrap();
        let (cost, deduplication) = (Cost::new(COST).unwrap(), Deduplication::ById);
        let (id, position) = (ChargeId(2), charged.position);
        let back = Operation::Refund { cost, position, id, deduplication };
        let first = apply_one(&only_old, NOW, &limit, &subject, back).await.unwrap();
        assert_eq!((first.refunded, first.used), (COST, 4));
        ahead.enter(Phase::Cutover);
        assert_eq!(apply_one(&ahead, NOW, &limit, &subject, take(0, 0)).await.unwrap().used, 4);
        again.enter(phase);
        for _ in 0..3 {
            apply_one(&again, NOW, &limit, &subject, back).await.unwrap();
            apply_one(&ahead, NOW, &limit, &subject, back).await.unwrap();
        }
        let exact = QUOTA - 4;
        assert_eq!(admitted(&ahead, NOW, &limit, &subject).await - exact, COST, "{phase:?}");
    }
}

/// A node in dual write counts refusals only at the old shard, and a node in cutover refunds a
/// charge of the same window.
#[tokio::test]
async fn a_refund_in_a_move_admits_the_cost_of_refused_calls_at_most() {
    // The costs of the refused calls, the refunded units, and the units above the limit.
    let cases: [(&[u64], u64, u64); 5] =
        [(&[], 3, 0), (&[5], 1, 3), (&[5], 3, 5), (&[3, 4], 5, 7), (&[9], 8, 9)];
    for (refused, refunded, above) in cases {
        let two = Two::new();
        let (behind, ahead, one) = (two.node(), two.node(), Memory::default());
        let limit = fixed("hammered", QUOTA).with_refusals(Refusals::Counted).unwrap();
        let subject = mover(&behind);
        let charged = apply_one(&behind, NOW, &limit, &subject, take(8, 1)).await.unwrap();
        ahead.enter(Phase::Cutover);
        assert_eq!(apply_one(&ahead, NOW, &limit, &subject, take(0, 0)).await.unwrap().used, 8);
        apply_one(&one, NOW, &limit, &subject, take(8, 1)).await.unwrap();
        for (cost, id) in refused.iter().zip(2..) {
            let reading = apply_one(&behind, NOW, &limit, &subject, take(*cost, id)).await.unwrap();
            assert_ne!(reading.admission, Admission::Now, "{refused:?}");
            apply_one(&one, NOW, &limit, &subject, take(*cost, id)).await.unwrap();
        }
        let back = refund(refunded, 1, charged.position);
        apply_one(&ahead, NOW, &limit, &subject, back).await.unwrap();
        apply_one(&one, NOW, &limit, &subject, back).await.unwrap();
        let exact = admitted(&one, NOW, &limit, &subject).await;
        let found = admitted(&ahead, NOW, &limit, &subject).await - exact;
        assert_eq!(found, above, "{refused:?}, {refunded}");
        assert!(found <= refused.iter().sum());
    }
}
