//! A test in which an attacker fills the store with invented users through a limiter. No user
//! exceeds a limit as a result.

use std::sync::Arc;

use tollgate::limiter::Decision;
use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, RequestMatch, Rule, SubjectSource,
};
use tollgate::model::{
    Algorithm, Cost, Headers, Limit, Millis, Policy, RequestAttributes, Timestamp,
};
use tollgate::observe::{Decider, Decisions, Degraded};
use tollgate::store::Memory;
use tollgate::store::memory::Bounds;
use tollgate::{DecisionRequest, DecisionSource, Limiter};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// One header field.
struct Field<'a>(&'static str, &'a str);

impl Headers for Field<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        (name == self.0 && index == 0).then_some(self.1.as_bytes())
    }
}

fn limit(name: &str, quota: u64) -> Arc<Limit> {
    let window = FixedWindow::new(quota, Millis::from_secs(3_600), Anchor::FirstRequest).unwrap();
    Arc::new(Limit::new(name, Algorithm::FixedWindow(window)).unwrap())
}

/// Returns a policy with one request per hour for each token and five logins for each account.
fn policy() -> Policy {
    let header = |name: &str| Dimension {
        name: name.into(),
        source: SubjectSource::Header { header: format!("x-{name}").into() },
    };
    let limits = vec![
        LimitBinding { limit: limit("per-token", 1), per: vec![0] },
        LimitBinding { limit: limit("login", 5), per: vec![1] },
    ];
    let rule = |name: &str, limit: usize, has: usize| {
        let matching = RequestMatch { has: vec![has], ..RequestMatch::default() };
        Rule::new(name, matching, vec![LimitRef { limit, cost: Cost::ONE }])
    };
    let rules = vec![rule("token", 0, 0), rule("login", 1, 1)];
    Policy::new(vec![header("token"), header("account")], limits, rules, MatchMode::FirstMatch)
        .unwrap()
}

#[tokio::test]
async fn who_fills_the_store_lets_nobody_past_a_limit() {
    let store = Memory::new(Bounds { max_entries: 3_000, ..Bounds::default() });
    let (decisions, degraded) =
        (Arc::new(Decisions::new(&policy())), Arc::new(Degraded::new(&policy())));
    let limiter = Limiter::new(policy(), store)
        .with_observer((Arc::clone(&decisions), Arc::clone(&degraded)));
    let check = async |field: Field<'_>| -> Decision {
        let attributes = RequestAttributes {
            method: "GET",
            path: "/",
            query: None,
            host: None,
            peer: None,
            headers: &field,
        };
        let policy = limiter.policy();
        let plan = limiter.plan_at(START, &policy, &attributes);
        limiter.decide(DecisionRequest::new(START, &policy, plan)).await
    };
    // With this many subjects, every overflow counter of the limit is in use, whatever the hash.
    for number in 0..20_000 {
        check(Field("x-token", &format!("invented-{number}"))).await;
    }
    let late = check(Field("x-token", "late")).await;
    assert_eq!((late.source, late.is_admitted()), (DecisionSource::Overflow, false));
    for account in 0..20 {
        let account = format!("account-{account}");
        for attempt in 0..20 {
            let decision = check(Field("x-account", &account)).await;
            assert_eq!(decision.source, DecisionSource::Store);
            assert_eq!(decision.is_admitted(), attempt < 5, "{account}, {attempt}");
        }
    }
    let overflow = Decider::ALL.iter().position(|decider| *decider == Decider::Overflow).unwrap();
    let limits = decisions.limits();
    let of = |name: &str| limits.iter().find(|counts| &*counts.limit == name).unwrap();
    assert!(of("per-token").refused[overflow] > 0);
    assert_eq!(of("login").admitted[overflow] + of("login").refused[overflow], 0);
    let counted: u64 = degraded
        .snapshot()
        .iter()
        .filter(|count| count.source == DecisionSource::Overflow)
        .map(|count| count.decisions)
        .sum();
    assert_eq!(counted, limiter.store().stats().overflow);
}
