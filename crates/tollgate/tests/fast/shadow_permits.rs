//! Requests that an enforced rule and a rule in shadow mode charge on the same concurrency limit.

use std::sync::Arc;

use tollgate::limiter::{Decision, PlanPosition, Reservation};
use tollgate::model::algo::{Anchor, Concurrency, FixedWindow};
use tollgate::model::policy::{LimitBinding, LimitRef, MatchMode, RequestMatch, Rule, RuleMode};
use tollgate::model::{
    Algorithm, Charge, Cost, Limit, Millis, Policy, Readings, RequestAttributes, Store, StoreError,
    Timestamp,
};
use tollgate::store::Memory;
use tollgate::{DecisionRequest, Limiter, ManualClock};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const MINUTE: Millis = Millis::from_secs(60);

const FACTS: RequestAttributes<'static> = RequestAttributes {
    method: "GET",
    path: "/",
    query: None,
    host: None,
    peer: None,
    headers: &(),
};

/// A store with one partition for each limit. A call is made at one partition after the other, and
/// is undone if one of them refuses.
struct Partitions(Memory);

impl Store for Partitions {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let mut readings = Vec::new();
        for charge in charges {
            readings.extend(self.0.apply(now, std::slice::from_ref(charge)).await?.iter().copied());
        }
        let readings = Readings::from(readings);
        if !readings.all_admitted() {
            for (charge, reading) in charges.iter().zip(readings.iter()) {
                if let Some(operation) = charge.operation.inverse(reading.position) {
                    self.0.apply(now, &[Charge { operation, ..*charge }]).await?;
                }
            }
        }
        Ok(readings)
    }
}

fn window(quota: u64) -> Algorithm {
    Algorithm::FixedWindow(FixedWindow::new(quota, MINUTE, Anchor::FirstRequest).unwrap())
}

/// Returns a limiter with `permits` permits and `calls` calls per minute. An enforced rule takes
/// `cost` permits of each request. A rule in shadow mode takes one permit, and charges one call.
fn limiter(permits: u64, calls: u64, cost: u64) -> Limiter<Partitions> {
    let flight = Algorithm::Concurrency(Concurrency::new(permits, MINUTE).unwrap());
    let flight = Limit::new("flight", flight).unwrap();
    let calls = Limit::new("calls", window(calls)).unwrap().with_candidate(window(9));
    let limits = [flight, calls];
    let limits = limits.map(|limit| LimitBinding { limit: Arc::new(limit), per: Vec::new() });
    let uses = |limit, cost| LimitRef { limit, cost: Cost::new(cost).unwrap() };
    let rule = |name, uses| Rule::new(name, RequestMatch::default(), uses);
    let enforced = rule("enforced", vec![uses(0, cost)]);
    let tried = Rule { mode: RuleMode::Shadow, ..rule("tried", vec![uses(0, 1), uses(1, 1)]) };
    let policy =
        Policy::new(Vec::new(), limits.into(), vec![enforced, tried], MatchMode::AllMatches);
    Limiter::new(policy.unwrap(), Partitions(Memory::default())).with_clock(ManualClock::new(START))
}

async fn decide(limiter: &Limiter<Partitions>, reservation: Reservation) -> Decision {
    let policy = limiter.policy();
    let plan = limiter.plan_at(START, &policy, &FACTS);
    let request = DecisionRequest::new(START, &policy, plan);
    limiter.decide(DecisionRequest { reservation, ..request }).await
}

/// Returns the used permits.
async fn in_flight(limiter: &Limiter<Partitions>) -> u64 {
    limiter.statuses(&FACTS).await.unwrap().statuses[0].used
}

/// The bug: the charge of the shadow rule had the permit of the enforced rule. If another limit of
/// the shadow rule refused, the store undid the shadow call and released the permit while the
/// request ran. A client that exceeded the limit of a shadow rule had no concurrency limit.
#[tokio::test]
async fn an_undone_shadow_call_released_the_permit_of_a_running_request() {
    for reservation in [Reservation::Nothing, Reservation::All(MINUTE)] {
        let limiter = limiter(2, 1, 1);
        let first = decide(&limiter, reservation).await;
        assert!(first.is_admitted() && first.shadow.unwrap().is_admitted());
        let second = decide(&limiter, reservation).await;
        assert!(second.is_admitted() && !second.shadow.unwrap().is_admitted());
        assert_eq!(in_flight(&limiter).await, 2, "{reservation:?}");
        assert!(!decide(&limiter, reservation).await.is_admitted(), "two requests are in flight");
        limiter.refund(second.receipt.unwrap()).await.unwrap();
        limiter.refund(first.receipt.unwrap()).await.unwrap();
        assert_eq!(in_flight(&limiter).await, 0, "{reservation:?}");
    }
}

/// The bug: the permit of a request had the cost of the shadow rule, which may be smaller than the
/// cost of the enforced rule.
#[tokio::test]
async fn a_shadow_rule_replaced_the_cost_of_a_permit() {
    for reservation in [Reservation::Nothing, Reservation::All(MINUTE)] {
        let limiter = limiter(4, 9, 3);
        let decision = decide(&limiter, reservation).await;
        assert_eq!(in_flight(&limiter).await, 3, "{reservation:?}");
        // The decision still has the status of every charge, in the order of the plan.
        let shadow = decision.shadow.as_ref().unwrap();
        let statuses = shadow.statuses.iter().map(|status| (status.limit.name(), status.used));
        assert_eq!(statuses.collect::<Vec<_>>(), [("flight", 3), ("calls", 1)]);
        let candidates = decision.candidates.iter().map(|candidate| candidate.position);
        assert_eq!(candidates.collect::<Vec<_>>(), [PlanPosition::Shadowed(1)]);
        limiter.refund(decision.receipt.unwrap()).await.unwrap();
        assert_eq!(in_flight(&limiter).await, 0, "{reservation:?}");
    }
}
