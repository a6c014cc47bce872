//! Tests that subjects move with their usage under different quotas of a limit.

use tollgate::model::algo::TokenBucket;
use tollgate::model::{Algorithm, Limit, StoreError};
use tollgate_stores::rebalance::Phase;

use crate::faulty::Trouble;
use crate::rebalance::{Two, mover};
use crate::setup::{NOW, WINDOW, apply_one, fixed, take};

/// The bug: after a charge that the new owner did not answer, only decisions with the quota of that
/// charge transferred the subject again.
#[tokio::test]
async fn a_diverged_subject_with_another_quota_was_not_transferred_again() {
    let two = Two::new();
    let node = two.node();
    let (limit, subject) = (fixed("core", 5), mover(&node));
    let other = limit.with_quota(6, None).unwrap();
    for (limit, id) in [(&limit, 1), (&other, 2)] {
        apply_one(&node, NOW, limit, &subject, take(1, id)).await.unwrap();
    }
    two.new.next([Trouble::Lost(StoreError::Unavailable)]);
    apply_one(&node, NOW, &limit, &subject, take(1, 3)).await.unwrap();
    assert_eq!(node.diverged(), 1);
    let next = apply_one(&node, NOW, &other, &subject, take(1, 4)).await.unwrap();
    let led = apply_one(node.after(), NOW, &other, &subject, take(0, 0)).await.unwrap();
    assert_eq!((next.used, led.used), (4, 4));
}

/// The bug: the transfer of a full smaller bucket, which moves no cell, was recorded for larger
/// buckets too. The new owner then started with a full larger bucket.
#[tokio::test]
async fn the_transfer_of_a_full_smaller_bucket_replaced_that_of_a_larger_bucket() {
    let two = Two::new();
    let node = two.node();
    let subject = mover(&node);
    let [small, large] = [100, 200].map(|burst| {
        let bucket = TokenBucket::new(burst, WINDOW, burst).unwrap();
        Limit::new("core", Algorithm::TokenBucket(bucket)).unwrap()
    });
    apply_one(node.before(), NOW, &large, &subject, take(50, 1)).await.unwrap();
    node.enter(Phase::Cutover);
    for (id, limit, cost, used) in [(2, &small, 101, 0), (3, &large, 1, 51), (4, &small, 1, 1)] {
        let reading = apply_one(&node, NOW, limit, &subject, take(cost, id)).await.unwrap();
        assert_eq!(reading.used, used);
    }
}
