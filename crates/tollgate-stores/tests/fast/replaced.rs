//! Tests of policies that are replaced while the limiter decides. Each policy is replaced as a
//! whole, and current windows are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tollgate::limiter::Decision;
use tollgate::limiter::Outcome;
use tollgate::model::algo::{
    Anchor, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, TwoBucket,
};
use tollgate::model::policy::{LimitBinding, LimitRef, MatchMode, RequestMatch, Rule};
use tollgate::model::{
    Algorithm, Cost, Limit, LimitStatus, Millis, OnChange, Operation, Percent, Policy,
    RequestAttributes, Store, Timestamp,
};
use tollgate::rollout_percentage::RolloutPercentage;
use tollgate::store::Memory;
use tollgate::{DecisionRequest, Limiter, ManualClock, Revision};
use tollgate_stores::{Atomic, QuotaRescale, Rollout};

use crate::setup::{NOW, apply_one, fixed, key, take, user};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn window(quota: u64, seconds: u64) -> Algorithm {
    let window = Millis::from_secs(seconds);
    Algorithm::FixedWindow(FixedWindow::new(quota, window, Anchor::FirstRequest).unwrap())
}

fn bucket(quota: u64, seconds: u64) -> Algorithm {
    Algorithm::TokenBucket(TokenBucket::new(quota, Millis::from_secs(seconds), quota).unwrap())
}

/// Returns a policy with the version `version`. All requests share the limit "all".
fn revision(version: &str, algorithm: Algorithm, on_change: OnChange) -> Revision {
    let limit = Limit::new("all", algorithm).unwrap().with_on_change(on_change);
    let limits = vec![LimitBinding { limit: Arc::new(limit), per: Vec::new() }];
    let rule =
        Rule::new("all", RequestMatch::default(), vec![LimitRef { limit: 0, cost: Cost::ONE }]);
    let policy = Policy::new(Vec::new(), limits, vec![rule], MatchMode::FirstMatch).unwrap();
    Revision::new(policy, version)
}

fn limiter(revision: Revision) -> Limiter<Memory> {
    Limiter::new(revision, Memory::default()).with_clock(ManualClock::new(START))
}

const REQUEST: RequestAttributes<'static> = RequestAttributes {
    method: "GET",
    path: "/",
    query: None,
    host: None,
    peer: None,
    headers: &(),
};

async fn check<S: Store>(limiter: &Limiter<S>) -> Decision {
    limiter.check(&REQUEST).await
}

fn status_of(decision: &Decision) -> (u64, u64, u64) {
    let LimitStatus { used, remaining, .. } = decision.evaluation.statuses[0];
    (decision.evaluation.statuses[0].limit.capacity(), used, remaining)
}

#[tokio::test]
async fn what_was_used_stays_used_and_never_leaves_less_than_nothing() {
    let limiter = limiter(revision("one", window(10, 3_600), OnChange::Keep));
    for used in 1..=6 {
        assert_eq!(status_of(&check(&limiter).await), (10, used, 10 - used));
    }
    let reset = check(&limiter).await.evaluation.statuses[0].resets_at;
    limiter.replace_policy(revision("higher", window(100, 3_600), OnChange::Keep));
    assert_eq!(status_of(&check(&limiter).await), (100, 8, 92));
    limiter.replace_policy(revision("lower", window(5, 60), OnChange::Keep));
    let refused = check(&limiter).await;
    assert!(!refused.is_admitted());
    assert_eq!((status_of(&refused), &**refused.policy.version()), ((5, 8, 0), "lower"));
    assert_eq!(
        refused.evaluation.statuses[0].resets_at, reset,
        "the window that runs ends as told"
    );
}

#[tokio::test]
async fn a_restart_forgets_and_finds_again_what_it_comes_back_to() {
    let limiter = limiter(revision("one", window(10, 60), OnChange::Restart));
    check(&limiter).await;
    limiter.replace_policy(revision("same", window(10, 60), OnChange::Restart));
    assert_eq!(status_of(&check(&limiter).await), (10, 2, 8), "nothing changed");
    limiter.replace_policy(revision("other", window(20, 60), OnChange::Restart));
    assert_eq!(status_of(&check(&limiter).await), (20, 1, 19));
    limiter.replace_policy(revision("back", window(10, 60), OnChange::Restart));
    assert_eq!(status_of(&check(&limiter).await), (10, 3, 7));
}

#[tokio::test]
async fn another_algorithm_starts_afresh_and_leaves_the_old_one_s_counters() {
    let limiter = limiter(revision("one", window(10, 60), OnChange::Keep));
    check(&limiter).await;
    limiter.replace_policy(revision("two", bucket(10, 60), OnChange::Keep));
    assert_eq!(status_of(&check(&limiter).await), (10, 1, 9));
    limiter.replace_policy(revision("three", window(10, 60), OnChange::Keep));
    assert_eq!(status_of(&check(&limiter).await), (10, 2, 8));
}

#[tokio::test]
async fn usage_is_scaled_before_a_decision_without_a_future() {
    let clock = Arc::new(ManualClock::new(START));
    let store = QuotaRescale::new(Memory::default());
    let first = revision("one", window(10, 60), OnChange::Scale);
    let limiter = Limiter::new(first, store).with_clock(Arc::clone(&clock));
    let at_once = || {
        let policy = limiter.policy();
        let plan = limiter.plan_at(limiter.now(), &policy, &REQUEST);
        limiter.decide_at_once(&mut DecisionRequest::new(limiter.now(), &policy, plan))
    };
    for used in 1..=5 {
        assert_eq!(status_of(&at_once().expect("nothing was replaced")), (10, used, 10 - used));
    }
    limiter.replace_policy(revision("two", window(100, 60), OnChange::Scale));
    assert!(at_once().is_none(), "the usage is not transferred yet");
    assert_eq!(status_of(&check(&limiter).await), (100, 51, 49));
    clock.set(START.after(Millis::from_secs(3_600)));
    assert_eq!(status_of(&at_once().expect("the earlier window has ended")), (100, 1, 99));
}

#[tokio::test]
async fn what_scales_goes_on_with_the_same_part_used_at_every_node() {
    let shared = Arc::new(Memory::default());
    let node = || {
        let first = revision("one", window(10, 60), OnChange::Scale);
        Limiter::new(first, QuotaRescale::new(Arc::clone(&shared)))
            .with_clock(ManualClock::new(START))
    };
    let (one, other) = (node(), node());
    for _ in 0..5 {
        check(&one).await;
    }
    let replace = |version, algorithm| {
        for limiter in [&one, &other] {
            limiter.replace_policy(revision(version, algorithm, OnChange::Scale));
        }
    };
    replace("two", window(100, 30));
    let first = check(&one).await;
    assert_eq!(status_of(&first), (100, 51, 49));
    assert_eq!(first.evaluation.statuses[0].resets_at, START.after(Millis::from_secs(30)));
    assert_eq!(status_of(&check(&other).await), (100, 52, 48), "both took over the same");
    assert_eq!((one.store().transferred(), other.store().transferred()), (1, 1));
    // The limit gets another algorithm, and the first decision with it is a refusal. A subject
    // without remaining units still has no remaining units.
    replace("three", bucket(10, 60));
    assert_eq!(status_of(&check(&one).await), (10, 7, 3));
    for _ in 0..3 {
        assert!(check(&other).await.is_admitted());
    }
    replace("four", window(1_000, 60));
    assert!(!check(&other).await.is_admitted());
    assert_eq!((one.store().failed_transfers(), other.store().failed_transfers()), (0, 0));
}

/// A node has transferred a subject to a definition. Later, this definition replaces another one
/// again.
#[tokio::test]
async fn a_definition_that_is_restored_takes_over_usage_again() {
    let clock = Arc::new(ManualClock::new(START));
    let (small, large) = (window(10, 60), window(100, 60));
    let first = revision("one", small, OnChange::Scale);
    let limiter = Limiter::new(first, QuotaRescale::new(Memory::default()));
    let limiter = limiter.with_clock(Arc::clone(&clock));
    for _ in 0..5 {
        check(&limiter).await;
    }
    limiter.replace_policy(revision("two", large, OnChange::Scale));
    assert_eq!(status_of(&check(&limiter).await), (100, 51, 49));
    clock.set(START.after(Millis::from_secs(3_600)));
    limiter.replace_policy(revision("three", small, OnChange::Scale));
    for used in 1..=10 {
        assert_eq!(status_of(&check(&limiter).await), (10, used, 10 - used));
    }
    limiter.replace_policy(revision("four", large, OnChange::Scale));
    let refused = check(&limiter).await;
    assert_eq!((refused.is_admitted(), status_of(&refused)), (false, (100, 100, 0)));
}

/// Two nodes transfer the same usage at different times, to algorithms that record the time of each
/// charge.
#[tokio::test]
async fn usage_that_two_nodes_transfer_at_different_times_counts_once() {
    let minute = Millis::from_secs(60);
    let sliding = SlidingWindow::new(100, minute, Millis::from_secs(1)).unwrap();
    // 45 seconds later, the two-bucket estimate counts 55/60 of the previous bucket.
    let cases = [
        (Algorithm::SlidingWindow(sliding), 52),
        (Algorithm::SlidingLog(SlidingLog::new(100, minute).unwrap()), 52),
        (Algorithm::TwoBucket(TwoBucket::new(100, minute).unwrap()), 48),
    ];
    for (algorithm, used) in cases {
        let (shared, clock) = (Arc::new(Memory::default()), Arc::new(ManualClock::new(START)));
        let [one, other] = [(); 2].map(|()| {
            let first = revision("one", window(10, 60), OnChange::Scale);
            Limiter::new(first, QuotaRescale::new(Arc::clone(&shared)))
                .with_clock(Arc::clone(&clock))
        });
        for _ in 0..5 {
            check(&one).await;
        }
        for limiter in [&one, &other] {
            limiter.replace_policy(revision("two", algorithm, OnChange::Scale));
        }
        assert_eq!(status_of(&check(&one).await), (100, 51, 49), "{algorithm:?}");
        clock.set(START.after(Millis::from_secs(45)));
        let (_, counted, _) = status_of(&check(&other).await);
        assert_eq!(counted, used, "{algorithm:?}");
    }
}

/// One node resets a subject. The other node has not transferred the usage under the earlier
/// definition yet.
#[tokio::test]
async fn a_reset_is_not_undone_by_usage_under_an_earlier_definition() {
    let shared = Arc::new(Memory::default());
    let [one, other] = [(); 2].map(|()| QuotaRescale::new(Arc::clone(&shared)));
    let (old, new, subject) = (scales(10), scales(100).with_predecessor(&scales(10), NOW), user(1));
    apply_one(&one, NOW, &old, &subject, take(5, 1)).await.unwrap();
    assert_eq!(apply_one(&one, NOW, &new, &subject, take(1, 2)).await.unwrap().used, 51);
    apply_one(&one, NOW, &new, &subject, Operation::Reset).await.unwrap();
    assert_eq!(apply_one(&other, NOW, &new, &subject, take(1, 3)).await.unwrap().used, 1);
}

/// The definition of a limit and the percentage of a rollout change before the subject's next
/// decision.
#[tokio::test]
async fn a_subject_that_moves_keeps_its_usage_under_an_earlier_definition() {
    let side = || QuotaRescale::new(Memory::default());
    let percentage = RolloutPercentage::new(Percent::NONE);
    let store = Atomic::new(Rollout::new(&key(), percentage.clone(), side(), side()));
    let (old, new, subject) = (scales(10), scales(100).with_predecessor(&scales(10), NOW), user(1));
    apply_one(&store, NOW, &old, &subject, take(5, 1)).await.unwrap();
    percentage.set(Percent::ALL);
    assert_eq!(apply_one(&store, NOW, &new, &subject, take(1, 2)).await.unwrap().used, 51);
}

/// Returns a fixed window whose usage is scaled if its quota changes.
fn scales(quota: u64) -> Limit {
    fixed("core", quota).with_on_change(OnChange::Scale)
}

#[tokio::test]
async fn receipts_of_the_old_policy_are_taken_where_the_limit_lives_on() {
    let limiter = limiter(revision("one", window(10, 60), OnChange::Keep));
    let (held, sealed) = (check(&limiter).await, check(&limiter).await);
    let text = limiter.seal(sealed.receipt.unwrap(), START);
    limiter.replace_policy(revision("two", window(5, 60), OnChange::Keep));
    limiter.refund_at(START, held.receipt.unwrap()).await.unwrap();
    let redeemed = limiter.redeem_at(START, &text).await.unwrap();
    assert_eq!(redeemed.outcome, Outcome::Refunded);
    assert_eq!(redeemed.limits[0].status.used, 0);
    assert_eq!(&**redeemed.policy.version(), "two");
    let charged = check(&limiter).await;
    let text = limiter.seal(charged.receipt.unwrap(), START);
    limiter.replace_policy(revision("three", window(5, 60), OnChange::Restart));
    let redeemed = limiter.redeem_at(START, &text).await.unwrap();
    assert_eq!(redeemed.outcome, Outcome::Unchanged, "its counters are others");
    assert_eq!(status_of(&check(&limiter).await), (5, 1, 4));
}

#[test]
fn every_decision_is_of_one_policy_while_it_is_replaced() {
    const QUOTAS: [u64; 3] = [1_000_000, 2_000_000, 3_000_000];
    let of = |quota: u64| revision(&quota.to_string(), window(quota, 3_600), OnChange::Keep);
    let limiter = limiter(of(QUOTAS[0]));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let deciders: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut decided = 0_u64;
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    while !is_over.load(Ordering::Relaxed) {
                        let decision = runtime.block_on(check(&limiter));
                        let (quota, used, remaining) = status_of(&decision);
                        assert_eq!(quota.to_string(), **decision.policy.version());
                        assert_eq!(remaining, quota - used);
                        decided += 1;
                    }
                    decided
                })
            })
            .collect();
        for round in 0..2_000 {
            limiter.replace_policy(of(QUOTAS[round % QUOTAS.len()]));
        }
        is_over.store(true, Ordering::Relaxed);
        let decided: u64 = deciders.into_iter().map(|decider| decider.join().unwrap()).sum();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (_, used, _) = status_of(&runtime.block_on(check(&limiter)));
        assert_eq!(used, decided + 1, "every charge was counted once, in the same window");
    });
}
