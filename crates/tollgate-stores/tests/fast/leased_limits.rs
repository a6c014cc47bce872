//! Limits with quota leases, together with all other features of a limiter. The decisions of a
//! single node are the same as without leases.

use std::num::NonZeroU64;
use std::sync::Arc;

use tollgate::limiter::Decision;
use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::policy::{
    ChargeOn, Dimension, LimitBinding, LimitRef, MatchMode, RequestMatch, Rule, SubjectSource,
};
use tollgate::model::{
    Algorithm, Cost, Limit, LimitMode, Millis, Percent, Policy, RequestAttributes, Store, Timestamp,
};
use tollgate::overrides::{
    Effect, Override, OverrideChange, OverrideScope, OverrideStore, OverrideTarget,
};
use tollgate::store::Memory;
use tollgate::{DecisionRequest, HashKey, Limiter, Settlement};
use tollgate_stores::QuotaLease;
use tollgate_stores::quota_lease::{LeaseConfig, MAX_LEASE_UNITS};

use crate::user::User;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const WINDOW: Millis = Millis::from_secs(3_600);
const QUOTA: u64 = 120;

/// A configuration that takes a lease after the first charge, of the largest size.
const EAGER: LeaseConfig =
    LeaseConfig { at_most: MAX_LEASE_UNITS, share: NonZeroU64::MIN, hot_after: 1 };

fn fixed(quota: u64) -> Algorithm {
    Algorithm::FixedWindow(FixedWindow::new(quota, WINDOW, Anchor::FirstRequest).unwrap())
}

/// Returns a policy with a limit of every algorithm, and with one exact limit, for each user.
fn policy(mode: LimitMode, charge: ChargeOn) -> Policy {
    let limit = |name: &str| Limit::new(name, fixed(QUOTA)).unwrap().with_mode(mode).unwrap();
    let limits = vec![
        limit("core"),
        limit("tried").with_candidate(fixed(QUOTA / 3)),
        limit("shared").with_enforced(Percent::new(50).unwrap()),
        Limit::new("exact", fixed(QUOTA + 9)).unwrap(),
    ];
    let user = Dimension {
        name: "user".into(),
        source: SubjectSource::Header { header: "x-user".into() },
    };
    let uses = (0..limits.len()).map(|limit| LimitRef { limit, cost: Cost::ONE }).collect();
    let of = |limit: Limit| LimitBinding { limit: Arc::new(limit), per: vec![0] };
    let rule = Rule { charge, ..Rule::new("all", RequestMatch::default(), uses) };
    let limits = limits.into_iter().map(of).collect();
    Policy::new(vec![user], limits, vec![rule], MatchMode::FirstMatch).unwrap()
}

/// Returns a text with everything by which a client or an operator could distinguish two decisions.
fn describe(decision: &Decision) -> String {
    let statuses = |evaluation: &tollgate::model::Evaluation| {
        let each = evaluation.statuses.iter().map(|it| {
            format!("{} {} {} {:?}", it.limit.name(), it.used, it.remaining, it.admission)
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let trials = decision
        .candidates
        .iter()
        .map(|it| format!("{:?} {:?}", it.live.admission, it.candidate.admission));
    let (trials, shadow) = (trials.collect::<Vec<_>>(), decision.shadow.as_ref().map(statuses));
    format!("{} [{}] {shadow:?} {trials:?}", decision.is_admitted(), statuses(&decision.evaluation))
}

/// Returns the answers to 400 requests of a busy user and two other users. Some of the requests are
/// refunded. After half of the requests, the busy user gets another quota, and the leases for the
/// earlier quota are refunded.
async fn run<S: Store>(limiter: Limiter<S>, sweep: impl AsyncFn(&S, Timestamp)) -> Vec<String> {
    let mut all = Vec::new();
    for step in 0..400_u64 {
        let now = START.after(Millis::new(step * 10));
        if step == 200 {
            override_core(&limiter, now, "hot", 2 * QUOTA).await;
            sweep(limiter.store(), now).await;
            sweep(limiter.store(), now).await;
        }
        let user = ["hot", "hot", "hot", "ann", "hot", "bob"][step as usize % 6];
        let headers = User(user);
        let attributes = RequestAttributes {
            method: "GET",
            path: "/",
            query: None,
            host: None,
            peer: None,
            headers: &headers,
        };
        let policy = limiter.policy();
        let plan = limiter.plan_at(now, &policy, &attributes);
        let mut decision = limiter.decide(DecisionRequest::new(now, &policy, plan)).await;
        all.push(format!("{step} {user}: {}", describe(&decision)));
        let is_free = step % 5 == 1;
        match (decision.pending.take(), decision.receipt.take()) {
            (Some(pending), _) if !is_free => {
                let _ = limiter.complete_at(now, pending).await;
                decision.settle(Settlement::Charged, now);
                all.push(format!("{step} {user}, charged: {}", describe(&decision)));
            }
            (None, Some(receipt)) if is_free => limiter.refund_at(now, receipt).await.unwrap(),
            _ => {}
        }
    }
    all
}

/// Sets the quota of `user` for the limit "core".
pub(crate) async fn override_core(
    limiter: &Limiter<impl Store>,
    now: Timestamp,
    user: &str,
    quota: u64,
) {
    let policy = limiter.policy();
    let user = policy.dimensions()[0].pair(Some(user), policy.paths().case, limiter.key()).unwrap();
    let target = OverrideScope {
        limit: Some("core".into()),
        target: OverrideTarget::subject(&user.veiled(limiter.key())),
    };
    let effect = Effect::Quota { quota, burst: None };
    let (expires_at, reason) = (now.after(WINDOW), "a test".into());
    let set_override = Override { target, effect, expires_at, reason };
    limiter.overrides().change(now, OverrideChange::Set(set_override)).await.unwrap();
}

#[tokio::test]
async fn one_node_reports_with_leases_what_it_reports_without() {
    for charge in [ChargeOn::Arrival, ChargeOn::Completion] {
        let key = || HashKey::from_secret(b"of the tests");
        let exact = Limiter::new(policy(LimitMode::Exact, charge), Memory::default());
        let store = QuotaLease::new(Memory::default(), EAGER);
        let leased = Limiter::new(policy(LimitMode::Leased, charge), store).with_key(key());
        let expected = run(exact.with_key(key()), async |_, _| {}).await;
        let found =
            run(leased, async |store: &QuotaLease<Memory>, now| store.sweep(now).await).await;
        for (expected, found) in expected.iter().zip(&found) {
            assert_eq!(found, expected, "{charge:?}");
        }
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().any(|describe| describe.contains(": false")), "the limit is met");
    }
}
