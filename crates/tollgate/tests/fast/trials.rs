//! Tests of limits on trial: candidates that are compared with the limits in force, and limits that
//! are enforced for a share of the subjects.

use std::sync::Arc;

use tollgate::limiter::Decision;
use tollgate::limiter::{ChargeRole, PlanPosition};
use tollgate::model::algo::{Anchor, Concurrency, FixedWindow};
use tollgate::model::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, PathCase, RequestMatch, Rule, SubjectSource,
};
use tollgate::model::{
    Algorithm, Cost, Limit, Millis, Percent, Policy, RequestAttributes, Timestamp,
};
use tollgate::observe::{CandidateCounts, Decisions};
use tollgate::overrides::{
    Effect, Override, OverrideChange, OverrideScope, OverrideStore, OverrideTarget,
};
use tollgate::store::Memory;
use tollgate::{DecisionRequest, HashKey, Limiter};

use crate::user::User;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const WINDOW: Millis = Millis::from_secs(3_600);

fn fixed(quota: u64) -> Algorithm {
    Algorithm::FixedWindow(FixedWindow::new(quota, WINDOW, Anchor::FirstRequest).unwrap())
}

fn flight(quota: u64) -> Algorithm {
    Algorithm::Concurrency(Concurrency::new(quota, Millis::from_secs(60)).unwrap())
}

fn limit(name: &str, algorithm: Algorithm) -> Limit {
    Limit::new(name, algorithm).unwrap()
}

/// Returns a policy with all of `limits` for each user.
fn policy(limits: Vec<Limit>) -> Policy {
    let user = Dimension {
        name: "user".into(),
        source: SubjectSource::Header { header: "x-user".into() },
    };
    let uses = (0..limits.len()).map(|limit| LimitRef { limit, cost: Cost::ONE }).collect();
    let of = |limit: Limit| LimitBinding { limit: Arc::new(limit), per: vec![0] };
    let rule = Rule::new("all", RequestMatch::default(), uses);
    let limits = limits.into_iter().map(of).collect();
    Policy::new(vec![user], limits, vec![rule], MatchMode::FirstMatch).unwrap()
}

struct Site {
    limiter: Limiter<Memory>,
    decisions: Arc<Decisions>,
}

impl Site {
    fn with(limits: Vec<Limit>) -> Self {
        let policy = policy(limits);
        let decisions = Arc::new(Decisions::new(&policy));
        let limiter = Limiter::new(policy, Memory::default())
            .with_key(HashKey::from_secret(b"of the tests"))
            .with_observer(Arc::clone(&decisions));
        Self { limiter, decisions }
    }

    async fn check(&self, user: &str) -> Decision {
        let headers = User(user);
        let attributes = RequestAttributes {
            method: "GET",
            path: "/",
            query: None,
            host: None,
            peer: None,
            headers: &headers,
        };
        let policy = self.limiter.policy();
        let plan = self.limiter.plan_at(START, &policy, &attributes);
        self.limiter.decide(DecisionRequest::new(START, &policy, plan)).await
    }

    /// Overrides `limit` for `user`.
    async fn override_limit(&self, limit: &str, user: &str, effect: Effect) {
        let key = self.limiter.key();
        let user =
            policy(Vec::new()).dimensions()[0].pair(Some(user), PathCase::Exact, key).unwrap();
        let target = OverrideTarget::subject(&user.veiled(key));
        let target = OverrideScope { limit: Some(limit.into()), target };
        let expires_at = START.after(WINDOW);
        let set =
            OverrideChange::Set(Override { target, effect, expires_at, reason: "a test".into() });
        self.limiter.overrides().change(START, set).await.unwrap();
    }

    fn trials(&self, limit: &str) -> CandidateCounts {
        let all = self.decisions.limits();
        all.iter().find(|counts| &*counts.limit == limit).unwrap().trials
    }
}

fn counts(counts: [u64; 4]) -> CandidateCounts {
    let [both_admit, both_refuse, only_live_refuses, only_candidate_refuses] = counts;
    CandidateCounts { both_admit, both_refuse, only_live_refuses, only_candidate_refuses }
}

#[tokio::test]
async fn a_smaller_candidate_refuses_nobody_and_is_compared() {
    let site = Site::with(vec![limit("core", fixed(4)).with_candidate(fixed(2))]);
    for admitted in [true, true, true, true, false] {
        assert_eq!(site.check("ann").await.is_admitted(), admitted);
    }
    assert!(site.check("bob").await.is_admitted());
    assert_eq!(site.trials("core"), counts([3, 1, 0, 2]));
}

#[tokio::test]
async fn a_larger_candidate_counts_what_the_limit_refuses() {
    let site = Site::with(vec![limit("core", fixed(1)).with_candidate(fixed(3))]);
    for _ in 0..4 {
        site.check("ann").await;
    }
    assert_eq!(site.trials("core"), counts([1, 1, 2, 0]));
}

#[tokio::test]
async fn what_another_limit_refuses_is_not_compared_and_not_counted() {
    let tried = limit("core", fixed(9)).with_candidate(fixed(8));
    let site = Site::with(vec![tried, limit("narrow", fixed(1))]);
    let decision = site.check("ann").await;
    assert_eq!(decision.candidates.len(), 1);
    for _ in 0..5 {
        assert!(site.check("ann").await.candidates.is_empty());
    }
    assert_eq!(site.trials("core"), counts([1, 0, 0, 0]));
}

#[tokio::test]
async fn a_candidate_is_refunded_what_its_limit_is() {
    let site = Site::with(vec![limit("core", fixed(9)).with_candidate(fixed(1))]);
    for _ in 0..3 {
        let decision = site.check("ann").await;
        assert!(!decision.candidates[0].candidate.is_refusal());
        site.limiter.refund_at(START, decision.receipt.unwrap()).await.unwrap();
    }
    // Also after sealing the receipt as text.
    for _ in 0..3 {
        let decision = site.check("ann").await;
        assert!(!decision.candidates[0].candidate.is_refusal());
        let text = site.limiter.seal(decision.receipt.unwrap(), START);
        assert_eq!(site.limiter.redeem_at(START, &text).await.unwrap().limits.len(), 2);
    }
}

#[tokio::test]
async fn a_lease_of_a_candidate_ends_with_its_request() {
    let site = Site::with(vec![limit("flight", flight(9)).with_candidate(flight(1))]);
    for _ in 0..3 {
        let decision = site.check("ann").await;
        assert!(!decision.candidates[0].candidate.is_refusal());
        site.limiter.renew(decision.receipt.as_ref().unwrap()).await.unwrap();
        site.limiter.refund_at(START, decision.receipt.unwrap()).await.unwrap();
    }
    let (_held, second) = (site.check("ann").await, site.check("ann").await);
    assert!(second.is_admitted() && second.candidates[0].candidate.is_refusal());
}

#[tokio::test]
async fn a_refused_request_holds_no_permit_of_a_candidate() {
    let site = Site::with(vec![limit("flight", flight(1)).with_candidate(flight(2))]);
    let _held = site.check("ann").await;
    for _ in 0..3 {
        let refused = site.check("ann").await;
        assert!(!refused.is_admitted());
        assert!(!refused.candidates[0].candidate.is_refusal(), "one of two permits is in use");
    }
}

#[tokio::test]
async fn candidates_of_a_refused_request_are_charged_all_or_none() {
    let refusing = limit("core", fixed(2)).with_candidate(fixed(9));
    let flight = limit("flight", flight(9)).with_candidate(flight(1));
    let site = Site::with(vec![refusing, flight]);
    let (_held, second) = (site.check("ann").await, site.check("ann").await);
    assert!(second.is_admitted() && second.candidates[1].candidate.is_refusal());
    for _ in 0..2 {
        let refused = site.check("ann").await;
        assert!(!refused.is_admitted());
        let candidates: Vec<_> = refused.candidates.iter().map(|it| &it.candidate).collect();
        assert!(!candidates[0].is_refusal() && candidates[1].is_refusal());
        // The status includes this request, whose charge is refunded.
        assert_eq!(candidates[0].used, 2, "earlier refused requests do not count");
    }
}

#[tokio::test]
async fn whom_an_override_is_about_is_not_compared() {
    let tried = limit("core", fixed(2)).with_candidate(fixed(1)).with_enforced(Percent::NONE);
    let site = Site::with(vec![tried]);
    site.override_limit("core", "ann", Effect::Quota { quota: 1, burst: None }).await;
    assert!(site.check("ann").await.is_admitted());
    let decision = site.check("ann").await;
    assert!(decision.candidates.is_empty());
    assert!(!decision.is_admitted(), "an override is enforced for whom it is about");
    assert_eq!(site.check("bob").await.candidates.len(), 1);
}

/// Returns the role of each charge in the plan, and the limit and capacity of its status.
fn roles(decision: &Decision, charges: usize) -> Vec<(ChargeRole, Option<(String, u64)>)> {
    let role = |index| {
        let charge = decision.charge_at(PlanPosition::Enforced(index));
        let limit = charge.status.map(|status| &status.limit);
        (charge.role, limit.map(|limit| (limit.name().to_owned(), limit.capacity())))
    };
    (0..charges).map(role).collect()
}

#[tokio::test]
async fn a_decision_says_how_each_charge_of_its_plan_was_evaluated() {
    let tried = limit("tried", fixed(9)).with_candidate(fixed(8));
    let counted = limit("counted", fixed(7)).with_enforced(Percent::NONE).with_candidate(fixed(6));
    let site = Site::with(vec![counted, limit("lifted", fixed(5)), limit("own", fixed(4)), tried]);
    site.override_limit("lifted", "ann", Effect::Unlimited).await;
    let own = Effect::Quota { quota: 3, burst: None };
    site.override_limit("own", "ann", own).await;

    let decision = site.check("ann").await;
    let status = |name: &str, capacity| Some((name.to_owned(), capacity));
    assert_eq!(
        roles(&decision, 4),
        [
            (ChargeRole::Counted, status("counted", 7)),
            (ChargeRole::Skipped, None),
            (ChargeRole::Enforced, status("own", 3)),
            (ChargeRole::Enforced, status("tried", 9)),
        ]
    );
    let at = |index| decision.charge_at(PlanPosition::Enforced(index));
    let index = |index| decision.status_index(PlanPosition::Enforced(index));
    assert_eq!([0, 1, 2, 3].map(index), [None, None, Some(0), Some(1)]);
    assert_eq!(
        [0, 1, 2, 3].map(|index| at(index).applied_override.is_some()),
        [false, true, true, false]
    );
    assert_eq!(at(2).applied_override.map(|applied| applied.limit.capacity()), Some(4));
    let candidate = |index| at(index).candidate.map(|outcome| outcome.candidate.limit.capacity());
    assert_eq!([0, 1, 2, 3].map(candidate), [Some(6), None, None, Some(8)]);

    site.override_limit("tried", "ann", Effect::Blocked).await;
    let blocked = site.check("ann").await;
    assert!(!blocked.is_admitted());
    let roles = roles(&blocked, 4);
    assert_eq!(roles[2], (ChargeRole::Skipped, None), "the store is not asked");
    assert_eq!(roles[3], (ChargeRole::Enforced, status("tried", 9)));

    let plain = site.check("bob").await;
    let index = |index| plain.status_index(PlanPosition::Enforced(index));
    assert_eq!([0, 1, 2, 3].map(index), [None, Some(0), Some(1), Some(2)]);
}

#[tokio::test]
async fn for_whom_a_limit_is_not_enforced_it_only_counts() {
    let share = Percent::new(30).unwrap();
    let tried = limit("core", fixed(1)).with_enforced(share).with_candidate(fixed(2));
    let site = Site::with(vec![tried, limit("wide", fixed(100))]);
    let mut refused = 0;
    for user in (0..200).map(|user| format!("user-{user}")) {
        let first = site.check(&user).await;
        let (second, third) = (site.check(&user).await, site.check(&user).await);
        assert!(first.is_admitted());
        assert_eq!(second.is_admitted(), third.is_admitted(), "{user} does not flap");
        // An admitted request shows the refusal that would have happened.
        let in_shadow = second.shadow.as_ref().is_some_and(|shadow| !shadow.is_admitted());
        assert_eq!(in_shadow, second.is_admitted());
        assert!(
            second.candidates[0].live.is_refusal() && !second.candidates[0].candidate.is_refusal()
        );
        refused += usize::from(!second.is_admitted());
    }
    assert!((30..90).contains(&refused), "{refused} of 200");
    let all = site.decisions.limits();
    let core = all.iter().find(|counts| &*counts.limit == "core").unwrap();
    assert_eq!(core.shadow_admitted, 200 - refused as u64);
    assert_eq!(core.shadow_refused, 2 * (200 - refused as u64));
}

#[tokio::test]
async fn what_is_not_enforced_is_not_reported_to_clients() {
    let site = Site::with(vec![limit("core", fixed(1)).with_enforced(Percent::NONE)]);
    site.check("ann").await;
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &(),
    };
    assert!(site.limiter.statuses(&attributes).await.unwrap().statuses.is_empty());
}
