//! Tests of the observer that counts decisions by limit, result and decider. The size of its table
//! is bounded.

use std::sync::Arc;

use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::policy::{LimitBinding, LimitRef, MatchMode, RequestMatch, Rule, RuleMode};
use tollgate::model::{Algorithm, Cost, Limit, Millis, Policy, RequestAttributes, Timestamp};
use tollgate::observe::{Decisions, LimitCounts, MAX_COUNTED_LIMITS, OTHER};
use tollgate::store::Memory;
use tollgate::{Limiter, ManualClock, Revision};

/// Returns a policy with one rule for all requests, with `limits` given as names and quotas.
fn policy(limits: &[(String, u64)], mode: RuleMode) -> Policy {
    let window = Millis::from_secs(3_600);
    let limit = |(name, quota): &(String, u64)| {
        let window = FixedWindow::new(*quota, window, Anchor::FirstRequest).unwrap();
        let limit = Limit::new(name, Algorithm::FixedWindow(window)).unwrap();
        LimitBinding { limit: Arc::new(limit), per: Vec::new() }
    };
    let uses = (0..limits.len()).map(|limit| LimitRef { limit, cost: Cost::ONE }).collect();
    let mut rule = Rule::new("all", RequestMatch::default(), uses);
    rule.mode = mode;
    let limits = limits.iter().map(limit).collect();
    Policy::new(Vec::new(), limits, vec![rule], MatchMode::AllMatches).unwrap()
}

fn named(limits: &[(&str, u64)]) -> Vec<(String, u64)> {
    limits.iter().map(|(name, quota)| ((*name).to_owned(), *quota)).collect()
}

fn counted(policy: Policy) -> (Limiter<Memory>, Arc<Decisions>) {
    let decisions = Arc::new(Decisions::new(&policy));
    let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
    let limiter = Limiter::new(Revision::new(policy, "one"), Memory::default());
    (limiter.with_clock(clock).with_observer(Arc::clone(&decisions)), decisions)
}

async fn check(limiter: &Limiter<Memory>, times: usize) {
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    for _ in 0..times {
        limiter.check(&attributes).await;
    }
}

/// Returns three counts of the store's decisions on `limit`: admitted, refused, and refused by this
/// limit.
fn of(decisions: &Decisions, limit: &str) -> [u64; 3] {
    let all = decisions.limits();
    let LimitCounts { admitted, refused, refusals, .. } =
        all.iter().find(|counts| &*counts.limit == limit).unwrap();
    [admitted[0], refused[0], refusals[0]]
}

#[tokio::test]
async fn each_limit_counts_what_it_was_asked_and_what_it_refused() {
    let (limiter, decisions) =
        counted(policy(&named(&[("narrow", 2), ("wide", 100)]), RuleMode::Enforce));
    check(&limiter, 5).await;
    assert_eq!(of(&decisions, "narrow"), [2, 3, 3]);
    assert_eq!(of(&decisions, "wide"), [2, 3, 0], "it had room, and the request was refused");
    assert_eq!(decisions.totals(), ([2, 0, 0, 0, 0], [3, 0, 0, 0, 0]));
}

#[tokio::test]
async fn what_rules_in_shadow_mode_would_do_is_counted_apart() {
    let (limiter, decisions) = counted(policy(&named(&[("tried", 2)]), RuleMode::Shadow));
    check(&limiter, 5).await;
    let counts = &decisions.limits()[0];
    assert_eq!((counts.shadow_admitted, counts.shadow_refused), (2, 3));
    assert_eq!(of(&decisions, "tried"), [0, 0, 0]);
    assert_eq!(decisions.totals(), ([5, 0, 0, 0, 0], [0; 5]));
}

#[tokio::test]
async fn another_policy_keeps_every_counter() {
    let (limiter, decisions) =
        counted(policy(&named(&[("kept", 10), ("gone", 10)]), RuleMode::Enforce));
    check(&limiter, 2).await;
    let next = policy(&named(&[("new", 1), ("kept", 10)]), RuleMode::Enforce);
    limiter.replace_policy(Revision::new(next, "two"));
    check(&limiter, 2).await;
    assert_eq!(of(&decisions, "kept"), [3, 1, 0]);
    assert_eq!(of(&decisions, "gone"), [2, 0, 0]);
    assert_eq!(of(&decisions, "new"), [1, 1, 1]);
}

#[tokio::test]
async fn limits_beyond_the_cap_are_counted_together() {
    // A limit with the name of the collective entry is part of that entry, so no name is reported
    // twice.
    let mut limits = named(&[(OTHER, 1_000)]);
    limits.extend((0..MAX_COUNTED_LIMITS).map(|index| (format!("first-{index}"), 1_000)));
    let (limiter, decisions) = counted(policy(&limits[..2], RuleMode::Enforce));
    limiter.replace_policy(Revision::new(policy(&limits, RuleMode::Enforce), "full"));
    let late = policy(&named(&[("late-1", 10), ("late-2", 10)]), RuleMode::Enforce);
    limiter.replace_policy(Revision::new(late, "late"));
    check(&limiter, 3).await;
    assert_eq!(of(&decisions, OTHER), [6, 0, 0], "three of each of the two limits");
    let mut names: Vec<_> = decisions.limits().into_iter().map(|counts| counts.limit).collect();
    assert_eq!(names.len(), MAX_COUNTED_LIMITS + 1);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), MAX_COUNTED_LIMITS + 1);
}
