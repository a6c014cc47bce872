//! Tenants whose rows change while requests are decided.

use std::sync::Arc;

use tollgate::limiter::Decision;
use tollgate::model::algo::{Anchor, FixedWindow};
use tollgate::model::policy::{
    Dimension, LimitBinding, LimitRef, MatchMode, Named, QuotasByValue, RequestMatch, Rule,
    SubjectSource,
};
use tollgate::model::{
    Algorithm, Cost, Headers, Limit, LimitStatus, Millis, OnChange, Policy, RequestAttributes,
    Timestamp,
};
use tollgate::store::Memory;
use tollgate::tenants::{Tenant, TenantBatch, TenantQuota, TenantStore};
use tollgate::{Limiter, ManualClock, Revision};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Returns a policy with a limit of 3 units by default, 5 for the plan `free` and 20 for the plan
/// `pro`. The header field `x-org` names the tenant.
fn policy() -> Policy {
    let source = SubjectSource::Header { header: "x-org".into() };
    let window = FixedWindow::new(3, Millis::from_secs(60), Anchor::FirstRequest).unwrap();
    let limit = Limit::new("calls", Algorithm::FixedWindow(window)).unwrap();
    let limit = limit.with_on_change(OnChange::Keep);
    let of = |(value, quota)| Arc::new(limit.for_value(value, quota, None).unwrap());
    let plans = [("pro", 20), ("free", 5)].map(of).into();
    let quotas = QuotasByValue::by_tenant(0, None, plans).unwrap();
    let limits = vec![LimitBinding { limit: Arc::new(limit), per: vec![0] }];
    let charge = LimitRef { limit: 0, cost: Cost::ONE };
    let rule = |name: &str| Rule::new(name, RequestMatch::default(), vec![charge]);
    let dimensions = vec![Dimension { name: "org".into(), source }];
    Policy::new(dimensions, limits, vec![rule("one"), rule("two")], MatchMode::AllMatches)
        .unwrap()
        .with_quotas(vec![quotas])
        .unwrap()
        .with_tenants(0)
        .unwrap()
}

fn limiter() -> (Limiter<Memory>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START));
    let limiter = Limiter::new(Revision::new(policy(), "one"), Memory::default());
    (limiter.with_clock(Arc::clone(&clock)), clock)
}

struct Org(&'static str);

impl Headers for Org {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        (name == "x-org" && index == 0).then_some(self.0.as_bytes())
    }
}

async fn check(limiter: &Limiter<Memory>) -> Decision {
    let attributes = RequestAttributes {
        method: "GET",
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &Org("acme"),
    };
    limiter.check(&attributes).await
}

/// Returns the quota, the used units and the reset of the only charge.
fn status(decision: &Decision) -> (u64, u64, Timestamp) {
    let [LimitStatus { used, resets_at, ref limit, .. }] = decision.evaluation.statuses[..] else {
        panic!("not one charge: {decision:?}")
    };
    (limit.capacity(), used, resets_at)
}

async fn set(limiter: &Limiter<Memory>, plan: Option<&str>, own: Option<u64>) {
    let own = own.map(|quota| TenantQuota { limit: "calls".into(), quota, burst: None });
    let (plan, quotas) = (plan.map(Into::into), own.into_iter().collect());
    let mut batch = TenantBatch::default();
    batch.set(&Tenant { name: "acme".into(), plan, quotas }).unwrap();
    limiter.tenants().apply(limiter.now(), batch).await.unwrap();
}

#[tokio::test]
async fn a_row_takes_effect_at_once_and_never_moves_the_reset() {
    let (limiter, clock) = limiter();
    // The default; two rules charge two units together.
    let (quota, used, resets_at) = status(&check(&limiter).await);
    assert_eq!((quota, used), (3, 2));
    clock.advance(Millis::from_secs(7));
    set(&limiter, Some("free"), None).await;
    assert_eq!(status(&check(&limiter).await), (5, 4, resets_at));
    set(&limiter, Some("pro"), None).await;
    assert_eq!(status(&check(&limiter).await), (20, 6, resets_at));
    set(&limiter, Some("pro"), Some(9)).await;
    assert_eq!(status(&check(&limiter).await), (9, 8, resets_at));
    let refused = check(&limiter).await;
    assert!(!refused.is_admitted());
    // A new policy keeps the rows.
    limiter.replace_policy(Revision::new(policy(), "two"));
    assert_eq!(status(&check(&limiter).await), (9, 8, resets_at));
    let mut batch = TenantBatch::default();
    batch.remove("acme");
    limiter.tenants().apply(limiter.now(), batch).await.unwrap();
    let (quota, _, reset) = status(&check(&limiter).await);
    assert_eq!((quota, reset), (3, resets_at));
}

#[tokio::test]
async fn a_charge_by_name_has_the_quota_of_its_tenant() {
    let (limiter, _) = limiter();
    set(&limiter, Some("pro"), None).await;
    let policy = limiter.policy();
    let subject = [("org", Some("acme"))];
    let named = Named { limit: "calls", cost: Cost::ONE, subject: &subject };
    let plan = policy.plan_named([named], limiter.key()).unwrap();
    assert_eq!(plan.planned[0].limit.capacity(), 20);
}
