//! Receipts as text: each can be redeemed once, and only if it is unchanged.

use std::sync::Arc;

use tollgate::limiter::Decision;
use tollgate::limiter::{Outcome, RedeemError};
use tollgate::model::algo::{Anchor, Concurrency, FixedWindow, SlidingWindow, TokenBucket};
use tollgate::model::policy::Named;
use tollgate::model::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, OnFailure, RequestMatch, Rule, RuleMode,
    SubjectSource as From,
};
use tollgate::model::{
    Algorithm, Charge, ChargeId, Cost, Limit, Millis, Operation, Policy, Readings,
    RequestAttributes, Store, StoreError, Timestamp,
};
use tollgate::store::Memory;
use tollgate::{DecisionRequest, HashKey, Limiter, ManualClock, ReceiptError};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const WINDOW: Millis = Millis::from_secs(60);

fn policy(names: [&str; 3]) -> Policy {
    let algorithms = [
        Algorithm::FixedWindow(FixedWindow::new(10, WINDOW, Anchor::FirstRequest).unwrap()),
        Algorithm::TokenBucket(TokenBucket::new(10, WINDOW, 10).unwrap()),
        Algorithm::Concurrency(Concurrency::new(10, Millis::from_secs(5)).unwrap()),
    ];
    let limits = names.into_iter().zip(algorithms).map(|(name, algorithm)| LimitBinding {
        limit: Arc::new(Limit::new(name, algorithm).unwrap()),
        per: vec![0],
    });
    let token = Dimension { name: "token".into(), source: From::Credential { header: "a".into() } };
    let rule =
        Rule::new("all", RequestMatch::default(), vec![LimitRef { limit: 0, cost: Cost::ONE }]);
    Policy::new(vec![token], limits.collect(), vec![rule], MatchMode::FirstMatch).unwrap()
}

fn limiter(key: &HashKey, names: [&str; 3]) -> Limiter<Memory> {
    let limiter = Limiter::new(policy(names), Memory::default()).with_key(key.clone());
    limiter.with_clock(ManualClock::new(START))
}

const NAMES: [&str; 3] = ["window", "bucket", "flight"];
const SUBJECT: &[(&str, Option<&str>)] = &[("token", Some("abc"))];

/// Charges 3 units of each of `limits`, and returns the receipt's text.
async fn charge(limiter: &Limiter<Memory>, now: Timestamp, limits: &[&str]) -> String {
    let cost = Cost::new(3).unwrap();
    let named = limits.iter().map(|limit| Named { limit, cost, subject: SUBJECT });
    let policy = limiter.policy();
    let named = policy.plan_named(named, limiter.key()).unwrap();
    let request = DecisionRequest::of_charges(now, &policy, named.planned, OnFailure::default());
    let decision = limiter.decide(request).await;
    limiter.seal(decision.receipt.unwrap(), now)
}

/// Checks a request at `now`.
async fn check_at<S: Store>(
    limiter: &Limiter<S>,
    now: Timestamp,
    attributes: &RequestAttributes<'_>,
) -> Decision {
    let policy = limiter.policy();
    let plan = limiter.plan_at(now, &policy, attributes);
    limiter.decide(DecisionRequest::new(now, &policy, plan)).await
}

#[tokio::test]
async fn a_receipt_gives_back_once() {
    let limiter = limiter(&HashKey::random(), NAMES);
    let text = charge(&limiter, START, &NAMES).await;
    let first = limiter.redeem_at(START, &text).await.unwrap();
    assert_eq!(first.outcome, Outcome::Refunded);
    let units: Vec<_> = first.limits.iter().map(|limit| limit.units).collect();
    assert_eq!(units, [3, 3, 3]);
    assert!(first.limits.iter().all(|limit| limit.status.used == 0));
    charge(&limiter, START, &NAMES).await;
    let again = limiter.redeem_at(START, &text).await.unwrap();
    assert_eq!(again.outcome, Outcome::Unchanged);
    assert!(again.limits.iter().all(|limit| limit.units == 0 && limit.status.used == 3));
}

#[tokio::test]
async fn a_receipt_is_worth_nothing_once_its_windows_are_over() {
    let limiter = limiter(&HashKey::random(), NAMES);
    let window = charge(&limiter, START, &["window"]).await;
    let lease = charge(&limiter, START, &["flight"]).await;
    let both = charge(&limiter, START, &["window", "flight"]).await;
    let outcome = async |text: &str, after: u64| {
        limiter.redeem_at(START.after(Millis::new(after)), text).await.unwrap().outcome
    };
    assert_eq!(outcome(&window, 60_000).await, Outcome::Expired);
    assert_eq!(outcome(&window, 59_999).await, Outcome::Refunded);
    assert_eq!(outcome(&lease, 5_000).await, Outcome::Expired);
    assert_eq!(outcome(&both, 5_000).await, Outcome::Refunded);
}

#[tokio::test]
async fn every_changed_letter_and_every_cut_is_refused() {
    let limiter = limiter(&HashKey::random(), NAMES);
    let text = charge(&limiter, START, &NAMES).await;
    for index in 0..text.len() {
        let other = if text.as_bytes()[index] == b'A' { "B" } else { "A" };
        let mut changed = text.clone();
        changed.replace_range(index..=index, other);
        let error = limiter.redeem_at(START, &changed).await.unwrap_err();
        assert!(matches!(error, RedeemError::Receipt(_)), "{index}");
        assert!(limiter.redeem_at(START, &text[..index]).await.is_err(), "{index}");
    }
    for text in ["", "====", "Zm9v", "\u{0}", "🦀", &"A".repeat(100_000), &format!("{text} ")] {
        assert!(limiter.redeem_at(START, text).await.is_err());
    }
    assert_eq!(limiter.redeem_at(START, &text).await.unwrap().outcome, Outcome::Refunded);
}

/// A proxy may pass a receipt on to its client, so the receipt must not show the subject.
#[tokio::test]
async fn a_receipt_shows_no_subject() {
    use base64::Engine as _;
    let source = From::Header { header: "x-user".into() };
    let user = Dimension { name: "user".into(), source };
    let key = HashKey::from_secret(b"one secret of a deployment");
    let policy = policy(NAMES);
    let (limits, rules) = (policy.limits().to_vec(), policy.rules().to_vec());
    let policy = Policy::new(vec![user], limits, rules, MatchMode::FirstMatch).unwrap();
    let limiter = Limiter::new(policy, Memory::default()).with_key(key.clone());
    let clear: &[(&str, Option<&str>)] = &[("user", Some("ann@example.com"))];
    let named = Named { limit: "window", cost: Cost::ONE, subject: clear };
    let policy = limiter.policy();
    let planned = policy.plan_named([named].into_iter(), limiter.key()).unwrap().planned;
    let request = DecisionRequest::of_charges(START, &policy, planned, OnFailure::default());
    let decision = limiter.decide(request).await;
    let text = limiter.seal(decision.receipt.unwrap(), START);
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(&text).unwrap();
    assert!(!bytes.windows(3).any(|part| b"ann@example.com".windows(3).any(|name| name == part)));
    assert_eq!(limiter.redeem_at(START, &text).await.unwrap().outcome, Outcome::Refunded);
}

#[tokio::test]
async fn another_deployment_takes_no_receipt_of_this_one() {
    let key = HashKey::from_secret(b"one secret of a deployment");
    let one = limiter(&key, NAMES);
    let text = charge(&one, START, &["window"]).await;
    let foreign = limiter(&HashKey::random(), NAMES).redeem_at(START, &text).await;
    assert_eq!(foreign.unwrap_err(), RedeemError::Receipt(ReceiptError::Foreign));
    // The same key, and a store that was never charged.
    let same = limiter(&key, NAMES).redeem_at(START, &text).await.unwrap();
    assert_eq!(same.outcome, Outcome::Unchanged);
}

#[tokio::test]
async fn a_limit_that_is_gone_or_counts_otherwise_gets_nothing_back() {
    let key = HashKey::from_secret(b"one secret of a deployment");
    let text = charge(&limiter(&key, NAMES), START, &["window"]).await;
    for names in [["other", "bucket", "flight"], ["bucket", "window", "flight"]] {
        let redeemed = limiter(&key, names).redeem_at(START, &text).await.unwrap();
        assert!(redeemed.limits.is_empty(), "{names:?}");
    }
}

#[tokio::test]
async fn a_release_ends_leases_and_leaves_what_was_counted() {
    let limiter = limiter(&HashKey::random(), NAMES);
    let text = charge(&limiter, START, &NAMES).await;
    let released = limiter.release_at(START, &text).await.unwrap();
    let names: Vec<_> = released.limits.iter().map(|one| one.status.limit.name()).collect();
    assert_eq!((released.outcome, names), (Outcome::Refunded, vec!["flight"]));
    assert_eq!(limiter.release_at(START, &text).await.unwrap().outcome, Outcome::Unchanged);
    let refunded = limiter.redeem_at(START, &text).await.unwrap();
    let units: Vec<_> = refunded.limits.iter().map(|limit| limit.units).collect();
    assert_eq!(units, [3, 3, 0]);
    let counted = charge(&limiter, START, &["window"]).await;
    assert_eq!(limiter.release_at(START, &counted).await.unwrap().outcome, Outcome::Unchanged);
}

#[tokio::test]
async fn a_lease_of_a_rule_in_shadow_mode_ends_with_the_receipt_of_both() {
    let flight = Algorithm::Concurrency(Concurrency::new(1, Millis::from_secs(5)).unwrap());
    let window =
        Algorithm::FixedWindow(FixedWindow::new(10, WINDOW, Anchor::FirstRequest).unwrap());
    let limit = |(name, algorithm)| LimitBinding {
        limit: Arc::new(Limit::new(name, algorithm).unwrap()),
        per: Vec::new(),
    };
    let limits = [("window", window), ("flight", flight)].map(limit).into();
    let rule = |name, limit| {
        Rule::new(name, RequestMatch::default(), vec![LimitRef { limit, cost: Cost::ONE }])
    };
    let tried = Rule { mode: RuleMode::Shadow, ..rule("tried", 1) };
    let policy =
        Policy::new(Vec::new(), limits, vec![rule("all", 0), tried], MatchMode::AllMatches);
    let limiter = Limiter::new(policy.unwrap(), Memory::default());
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    for _ in 0..3 {
        let decision = check_at(&limiter, START, &attributes).await;
        assert!(decision.shadow.unwrap().is_admitted(), "the one before has ended");
        limiter.refund_at(START, decision.receipt.unwrap()).await.unwrap();
    }
}

/// A store that checks the contract of its callers: a call has at most one charge per limit and
/// subject, except refunds with different ids.
struct Contract(Memory);

impl Store for Contract {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        for (place, charge) in charges.iter().enumerate() {
            let is_same = |other: &Charge<'_>| {
                let refunds = match (other.operation, charge.operation) {
                    (Operation::Refund { id, .. }, Operation::Refund { id: other, .. }) => {
                        id != other
                    }
                    _ => false,
                };
                other.limit.name() == charge.limit.name()
                    && other.subject == charge.subject
                    && !refunds
            };
            assert!(!charges[..place].iter().any(is_same), "two charges on {charge:?}");
        }
        self.0.apply(now, charges).await
    }
}

/// Returns a limiter with two rules on three limits. One rule enforces the limits that the other
/// rule has in shadow mode.
fn enforced_and_tried() -> Limiter<Contract> {
    let limits = policy(NAMES).limits().to_vec();
    let limits =
        limits.into_iter().map(|limit| LimitBinding { per: Vec::new(), ..limit }).collect();
    let rule = |name, cost| {
        let cost = Cost::new(cost).unwrap();
        Rule::new(
            name,
            RequestMatch::default(),
            (0..3).map(|limit| LimitRef { limit, cost }).collect(),
        )
    };
    let tried = Rule { mode: RuleMode::Shadow, ..rule("tried", 2) };
    let policy =
        Policy::new(Vec::new(), limits, vec![rule("all", 1), tried], MatchMode::AllMatches);
    Limiter::new(policy.unwrap(), Contract(Memory::default())).with_clock(ManualClock::new(START))
}

#[tokio::test]
async fn a_limit_that_is_enforced_and_tried_is_refunded_once() {
    let limiter = enforced_and_tried();
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let used = async || {
        let statuses = limiter.statuses(&attributes).await.unwrap().statuses;
        statuses.iter().map(|status| status.used).collect::<Vec<_>>()
    };
    let kept = check_at(&limiter, START, &attributes).await.receipt.unwrap();
    let before = used().await;
    let receipt = check_at(&limiter, START, &attributes).await.receipt.unwrap();
    assert_ne!(used().await, before);
    limiter.renew(&receipt).await.unwrap();
    limiter.refund_at(START, receipt).await.unwrap();
    assert_eq!(used().await, before, "all of the second request, and nothing of the first");

    let text = limiter.seal(kept, START);
    assert_eq!(limiter.redeem_at(START, &text).await.unwrap().outcome, Outcome::Refunded);
    assert_eq!(used().await, [0, 0, 0]);
    assert_eq!(limiter.redeem_at(START, &text).await.unwrap().outcome, Outcome::Unchanged);
}

/// A store in which time passes between the calls of one decision. Before each call except the
/// first, another node with a fast clock charges one unit of the same limits.
struct TimePasses(Contract);

impl Store for TimePasses {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let readings = self.0.apply(now, charges).await?;
        for Charge { limit, subject, operation } in charges {
            if let Operation::Charge { .. } = operation {
                let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(u128::MAX) };
                let ahead = now.after(Millis::from_secs(2));
                self.0.apply(ahead, &[Charge { limit, subject, operation }]).await?;
            }
        }
        Ok(readings)
    }
}

#[tokio::test]
async fn what_one_request_charged_to_two_blocks_is_refunded_to_both_once() {
    let window = SlidingWindow::new(100, WINDOW, Millis::from_secs(1)).unwrap();
    let limit = Limit::new("window", Algorithm::SlidingWindow(window)).unwrap();
    let limits = vec![LimitBinding { limit: Arc::new(limit), per: Vec::new() }];
    let rule = |name, cost| {
        Rule::new(
            name,
            RequestMatch::default(),
            vec![LimitRef { limit: 0, cost: Cost::new(cost).unwrap() }],
        )
    };
    let tried = Rule { mode: RuleMode::Shadow, ..rule("tried", 5) };
    let policy =
        Policy::new(Vec::new(), limits, vec![rule("all", 3), tried], MatchMode::AllMatches);
    let store = TimePasses(Contract(Memory::default()));
    let limiter = Limiter::new(policy.unwrap(), store).with_clock(ManualClock::new(START));
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    let used = async || limiter.statuses(&attributes).await.unwrap().statuses[0].used;

    let receipt = check_at(&limiter, START, &attributes).await.receipt.unwrap();
    assert_eq!(used().await, 3 + 5 + 2, "the request's, and the other node's");
    limiter.refund_at(START, receipt).await.unwrap();
    assert_eq!(used().await, 2, "all of it is given back");

    let later = START.after(Millis::from_secs(10));
    let receipt = check_at(&limiter, later, &attributes).await.receipt.unwrap();
    let text = limiter.seal(receipt, later);
    let redeemed = limiter.redeem_at(later, &text).await.unwrap();
    let units: Vec<_> = redeemed.limits.iter().map(|limit| limit.units).collect();
    assert_eq!(units, [3, 5], "each to its block");
    assert_eq!(redeemed.limits[1].status.used, 4, "the other node's");
    let again = limiter.redeem_at(later, &text).await.unwrap();
    assert_eq!((again.outcome, again.limits[1].status.used), (Outcome::Unchanged, 4));
}
