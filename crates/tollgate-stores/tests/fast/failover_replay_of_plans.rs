//! Tests that charges under different quotas of a limit are replayed after a failover.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tollgate::model::algo::TokenBucket;
use tollgate::model::{Algorithm, Limit, Millis};
use tollgate::store::Memory;

use crate::failover_replay::{QUOTA, at_once, nodes, takes, waits};
use crate::setup::{NOW, WINDOW, apply_one, of_every_kind, take, user};

/// Two plans give a token bucket different quotas. The node last received an answer about a subject
/// with the other plan.
#[test]
fn each_subject_is_replayed_with_its_own_quota() {
    let bucket = |quota| {
        let bucket = TokenBucket::new(quota, WINDOW, 10).unwrap();
        Limit::new("core", Algorithm::TokenBucket(bucket)).unwrap()
    };
    let (servers, [node]) = nodes();
    let (slow, fast) = (bucket(10), bucket(100));
    servers.cut();
    takes(&node, &slow, 1..=10);
    at_once(apply_one(&node, NOW, &fast, &user(2), take(1, 11))).unwrap();
    servers.promote(Memory::default());
    assert_eq!(takes(&node, &slow, 12..=12).used, 10);
}

/// The bug: a node recorded its charges for each quota of a subject, and the replay joined the larger
/// number instead of the sum.
#[test]
fn charges_with_two_quotas_were_not_added_up() {
    for limit in of_every_kind(QUOTA) {
        let other = limit.with_quota(2 * QUOTA, None).unwrap();
        let (servers, [node]) = nodes();
        takes(&node, &limit, 1..=10);
        servers.cut();
        takes(&node, &limit, 11..=17);
        takes(&node, &other, 18..=22);
        servers.promote(Memory::default());
        assert_eq!(takes(&node, &limit, 23..=23).used, 23, "{limit:?}");
    }
}

/// The bug: a node kept the definitions of 1,024 limits. The next one removed all of them, and the
/// replay skipped the records of the limits without a definition.
#[test]
fn records_of_more_than_1_024_quotas_were_not_replayed() {
    const QUOTAS: u64 = 1_500;
    let (servers, [node]) = nodes();
    // With so many entries, no set of the cache is full.
    let node = node.with_entries(1 << 16);
    servers.cut();
    for number in 1..=QUOTAS {
        let bucket = TokenBucket::new(number, WINDOW, 10).unwrap();
        let limit = Limit::new("core", Algorithm::TokenBucket(bucket)).unwrap();
        at_once(apply_one(&node, NOW, &limit, &user(number), take(1, number.into()))).unwrap();
    }
    servers.promote(Memory::default());
    takes(&node, &two_bursts()[0], 1..=1);
    assert_eq!(node.replayed().limits, QUOTAS);
}

/// Returns a token bucket with a burst of 100, and the same bucket with a burst of 200.
fn two_bursts() -> [Limit; 2] {
    [100, 200].map(|burst| {
        let bucket = TokenBucket::new(burst, WINDOW, burst).unwrap();
        Limit::new("core", Algorithm::TokenBucket(bucket)).unwrap()
    })
}

/// The bug: a charge that a smaller bucket refused replaced the record of a larger bucket. The
/// smaller bucket was full, so a failover lost all units of the larger bucket.
#[test]
fn a_refusal_under_a_smaller_burst_removed_the_record_of_a_bucket() {
    let (servers, [node]) = nodes();
    let [small, large] = two_bursts();
    let one =
        |limit, operation| at_once(apply_one(&node, NOW, limit, &user(1), operation)).unwrap().used;
    servers.cut();
    assert_eq!(one(&large, take(50, 1)), 50);
    assert_eq!(one(&small, take(101, 2)), 0);
    servers.promote(Memory::default());
    assert_eq!(one(&large, take(1, 3)), 51);
}

/// The bug: the answer of an earlier charge arrived last, and replaced the record of a later charge
/// under another quota.
#[tokio::test]
async fn a_late_answer_replaced_the_record_of_another_quota() {
    let (servers, [node]) = nodes();
    let ([small, large], subject) = (two_bursts(), user(1));
    servers.cut();
    let gate = Arc::new(Semaphore::new(0));
    *node.store().answers.lock() = Some(Arc::clone(&gate));
    let mut late = pin!(apply_one(&node, NOW, &small, &subject, take(10, 1)));
    waits(late.as_mut()).await;
    *node.store().answers.lock() = None;
    let later = apply_one(&node, NOW, &large, &subject, take(20, 2)).await.unwrap();
    assert_eq!(later.used, 200 - 70);
    gate.add_permits(1);
    assert_eq!(late.await.unwrap().used, 10);
    servers.promote(Memory::default());
    let next = apply_one(&node, NOW, &large, &subject, take(1, 3)).await.unwrap();
    assert_eq!(next.used, 200 - 69);
}

/// A bucket refills at the rate of the quota that charges it. The records of two quotas are combined
/// as of their own times.
#[test]
fn a_bucket_with_two_rates_is_replayed_as_it_was() {
    let (servers, [node]) = nodes();
    let [small, large] = two_bursts();
    let at = |seconds| NOW.after(Millis::from_secs(seconds));
    let one = |seconds: u64, limit: &Limit, cost| {
        let take = take(cost, seconds.into());
        at_once(apply_one(&node, at(seconds), limit, &user(1), take)).unwrap().used
    };
    servers.cut();
    assert_eq!(one(0, &small, 80), 80);
    // 20 tokens remained, and 200 arrive in 60 s.
    assert_eq!(one(6, &large, 10), 200 - 30);
    assert_eq!(one(12, &small, 10), 100 - 30);
    servers.promote(Memory::default());
    assert_eq!(one(12, &small, 1), 100 - 29);
}
