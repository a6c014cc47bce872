//! Tests of costs that a settlement could not charge. Limits that can refuse a request carry over
//! such costs. Candidates, limits of rules in shadow mode and limits that are not enforced for a
//! subject do not.

use std::num::NonZeroU64;
use std::sync::Arc;

use tollgate::limiter::{Decision, HoldOutcome, Reservation};
use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::policy::{
    LimitBinding, LimitRef, MatchMode, Meter, MeteredLimit, RequestMatch, Rule, RuleMode,
};
use tollgate::model::{
    Algorithm, Cost, Limit, Millis, Percent, Policy, RequestAttributes, Timestamp,
};
use tollgate::store::Memory;
use tollgate::{DecisionRequest, Limiter, ManualClock, Settlement};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const MINUTE: Millis = Millis::from_secs(60);

const FACTS: RequestAttributes<'static> = RequestAttributes {
    method: "POST",
    path: "/",
    query: None,
    host: None,
    peer: None,
    headers: &(),
};

/// How a reservation is settled.
#[derive(Clone, Copy, Debug)]
enum Settle {
    /// By the receipt that the decision returned.
    Receipt,
    /// By the sealed text of the receipt.
    Text,
    /// By the cost that the response reports.
    Metered,
}

const SETTLE: [Settle; 3] = [Settle::Receipt, Settle::Text, Settle::Metered];

fn units(count: u64) -> Cost {
    Cost::new(count).unwrap()
}

fn window(quota: u64) -> Algorithm {
    Algorithm::FixedWindow(FixedWindow::new(quota, MINUTE, Anchor::FirstRequest).unwrap())
}

fn tokens(quota: u64) -> Limit {
    Limit::new("tokens", window(quota)).unwrap()
}

/// Returns a policy with one rule of each of `modes`. Each rule reserves 10 units of `limit` for
/// every request, and the response reports the cost.
fn policy(limit: Limit, modes: &[RuleMode]) -> Policy {
    let rule = |(index, mode): (usize, &RuleMode)| {
        let uses = vec![LimitRef { limit: 0, cost: units(10) }];
        let mut rule = Rule::new(format!("rule-{index}"), RequestMatch::default(), uses);
        let meter = Arc::new(Meter::Size { bytes: NonZeroU64::MIN });
        rule.metered.push(MeteredLimit { limit: 0, meter, reserve: None });
        rule.mode = *mode;
        rule
    };
    let rules = modes.iter().enumerate().map(rule).collect();
    let limits = vec![LimitBinding { limit: Arc::new(limit), per: Vec::new() }];
    Policy::new(Vec::new(), limits, rules, MatchMode::AllMatches).unwrap()
}

fn limiter(policy: Policy) -> Limiter<Memory> {
    Limiter::new(policy, Memory::default()).with_clock(ManualClock::new(START))
}

async fn decide_at(
    limiter: &Limiter<Memory>,
    now: Timestamp,
    reservation: Reservation,
) -> Decision {
    let policy = limiter.policy();
    let plan = policy.plan(&FACTS, limiter.key());
    let request = DecisionRequest::new(now, &policy, plan);
    limiter.decide(DecisionRequest { reservation, ..request }).await
}

/// Sends a request that reserves 10 units of each limit and costs 500.
async fn spend(limiter: &Limiter<Memory>, settle: Settle) {
    let real = |_: &Limit, _: Cost| units(500);
    let reservation = match settle {
        Settle::Receipt | Settle::Text => Reservation::All(MINUTE),
        Settle::Metered => Reservation::Metered,
    };
    let decision = decide_at(limiter, START, reservation).await;
    let settled = match settle {
        Settle::Receipt => limiter.settle(decision.receipt.unwrap(), real).await,
        Settle::Text => {
            let text = limiter.seal(decision.receipt.unwrap(), START);
            limiter.settle_at(START, &text, real).await
        }
        Settle::Metered => {
            let (reserved, charged) = (decision.reserved.unwrap(), Settlement::Charged);
            let measured = |_: &Meter| Some(units(500));
            limiter.settle_metered_at(START, reserved, charged, measured).await.unwrap();
            return;
        }
    };
    assert_eq!(settled.unwrap().outcome, HoldOutcome::Done);
}

/// The bug: a candidate has the name of its limit, so the units that did not fit into the candidate
/// were added to the unpaid costs of the limit. The next decision charged 400 units of the limit a
/// second time.
#[tokio::test]
async fn a_limit_was_charged_for_the_costs_of_its_candidate() {
    for settle in SETTLE {
        let tokens = tokens(1_000_000).with_candidate(window(100));
        let limiter = limiter(policy(tokens, &[RuleMode::Enforce]));
        spend(&limiter, settle).await;
        let decision = decide_at(&limiter, START, Reservation::Nothing).await;
        assert_eq!(decision.evaluation.statuses[0].used, 510, "{settle:?}");
    }
}

/// The bug: the costs of a limit that could not refuse the request were carried over too. No
/// decision charged these costs, so they grew until the limit was enforced, and then refused the
/// client for many windows.
#[tokio::test]
async fn costs_of_a_limit_that_was_not_enforced_were_carried_over() {
    let shadow = (tokens(100), RuleMode::Shadow);
    let share = (tokens(100).with_enforced(Percent::NONE), RuleMode::Enforce);
    for (limit, mode) in [shadow, share] {
        for settle in SETTLE {
            let limiter = limiter(policy(limit.clone(), &[mode]));
            spend(&limiter, settle).await;
            limiter.replace_policy(policy(tokens(100), &[RuleMode::Enforce]).into());
            let policy = limiter.policy();
            let plan = policy.plan(&FACTS, limiter.key());
            let mut request = DecisionRequest::new(START.after(MINUTE), &policy, plan);
            // An unpaid cost of any subject would prevent a decision at once.
            let decision = limiter.decide_at_once(&mut request);
            let used = decision.map(|decision| decision.evaluation.statuses[0].used);
            assert_eq!(used, Some(10), "{mode:?}, {settle:?}");
        }
    }
}

#[tokio::test]
async fn a_limit_of_an_enforced_rule_and_a_shadow_rule_carries_over_costs() {
    for settle in SETTLE {
        let limiter = limiter(policy(tokens(100), &[RuleMode::Enforce, RuleMode::Shadow]));
        spend(&limiter, settle).await;
        let later = decide_at(&limiter, START.after(MINUTE), Reservation::Nothing).await;
        assert!(!later.is_admitted(), "{settle:?}");
    }
}

/// The bug: the reservations of an enforced rule and of a shadow rule on one limit had one id, so
/// the settlement ended only one of them. The units of the other were reserved until it expired.
#[tokio::test]
async fn a_settlement_ended_only_one_of_two_reservations_on_one_limit() {
    for settle in SETTLE {
        let modes = [RuleMode::Enforce, RuleMode::Shadow];
        let limiter = limiter(policy(tokens(1_000_000), &modes));
        spend(&limiter, settle).await;
        let policy = limiter.policy();
        let planned = policy.plan(&FACTS, limiter.key()).enforced;
        let (evaluation, _) = limiter.peek_planned(START, &planned).await.unwrap();
        let status = &evaluation.statuses[0];
        assert_eq!((status.used, status.reserved), (1_000, 0), "{settle:?}");
    }
}
