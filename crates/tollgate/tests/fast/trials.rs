//! Limits that are tried: candidates beside those in force, and shares of their subjects.

use std::sync::Arc;

use tollgate::core::algo::{Anchor, Concurrency, FixedWindow};
use tollgate::core::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, RequestMatch, Rule, SubjectSource,
};
use tollgate::core::{
    Algorithm, Cost, Limit, Millis, Percent, Policy, RequestAttributes, Timestamp,
};
use tollgate::observe::{CandidateCounts, Decisions};
use tollgate::overrides::{
    Effect, Override, OverrideChange, OverrideScope, OverrideStore, OverrideTarget,
};
use tollgate::store::Memory;
use tollgate::{Decision, HashKey, Limiter};

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

/// Everything counts on all of `limits`, for each user.
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
            host: None,
            peer: None,
            headers: &headers,
        };
        self.limiter.check_at(START, &attributes).await
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
    assert_eq!(decision.trials.len(), 1);
    for _ in 0..5 {
        assert!(site.check("ann").await.trials.is_empty());
    }
    assert_eq!(site.trials("core"), counts([1, 0, 0, 0]));
}

#[tokio::test]
async fn a_candidate_is_refunded_what_its_limit_is() {
    let site = Site::with(vec![limit("core", fixed(9)).with_candidate(fixed(1))]);
    for _ in 0..3 {
        let decision = site.check("ann").await;
        assert!(!decision.trials[0].candidate.is_refusal());
        site.limiter.refund_at(START, decision.receipt.unwrap()).await.unwrap();
    }
    // As text that went out and came back, too.
    for _ in 0..3 {
        let decision = site.check("ann").await;
        assert!(!decision.trials[0].candidate.is_refusal());
        let text = site.limiter.seal(decision.receipt.unwrap(), START);
        assert_eq!(site.limiter.redeem_at(START, &text).await.unwrap().limits.len(), 2);
    }
}

#[tokio::test]
async fn a_lease_of_a_candidate_ends_with_its_request() {
    let site = Site::with(vec![limit("flight", flight(9)).with_candidate(flight(1))]);
    for _ in 0..3 {
        let decision = site.check("ann").await;
        assert!(!decision.trials[0].candidate.is_refusal());
        site.limiter.renew(decision.receipt.as_ref().unwrap()).await.unwrap();
        site.limiter.refund_at(START, decision.receipt.unwrap()).await.unwrap();
    }
    let (_held, second) = (site.check("ann").await, site.check("ann").await);
    assert!(second.is_admitted() && second.trials[0].candidate.is_refusal());
}

#[tokio::test]
async fn whom_an_override_is_about_is_not_compared() {
    let tried = limit("core", fixed(2)).with_candidate(fixed(1)).with_enforced(Percent::NONE);
    let site = Site::with(vec![tried]);
    let user = policy(Vec::new()).dimensions()[0].pair(Some("ann"), site.limiter.key()).unwrap();
    let target = OverrideScope {
        limit: Some("core".into()),
        target: OverrideTarget::subject(&user.veiled(site.limiter.key())),
    };
    let (effect, expires_at) = (Effect::Quota { quota: 1, burst: None }, START.after(WINDOW));
    let said = Override { target, effect, expires_at, reason: "a test".into() };
    site.limiter.overrides().change(START, OverrideChange::Set(said)).await.unwrap();
    assert!(site.check("ann").await.is_admitted());
    let decision = site.check("ann").await;
    assert!(decision.trials.is_empty());
    assert!(!decision.is_admitted(), "an override is enforced for whom it is about");
    assert_eq!(site.check("bob").await.trials.len(), 1);
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
        // Whoever is not refused is told of what would have been.
        let in_shadow = second.shadow.as_ref().is_some_and(|shadow| !shadow.is_admitted());
        assert_eq!(in_shadow, second.is_admitted());
        assert!(second.trials[0].live.is_refusal() && !second.trials[0].candidate.is_refusal());
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
    let attributes =
        RequestAttributes { method: "GET", path: "/", host: None, peer: None, headers: &() };
    assert!(site.limiter.statuses(&attributes).await.unwrap().statuses.is_empty());
}
