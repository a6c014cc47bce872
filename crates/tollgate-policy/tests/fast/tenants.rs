//! Tenants: the subject that contains the name of the tenant, and quotas by the plan of the tenant.

use std::sync::Arc;

use tollgate_core::policy::{Named, QuotasByValue, TenantLookup};
use tollgate_core::{Cost, KeyedHash, Limit};
use tollgate_policy::{explain, parse};

struct Sum;

impl KeyedHash for Sum {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        [bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)); 16]
    }
}

/// A table with one tenant, `acme`. The tenant has the plan `pro`, and a quota of 7 for the limit
/// `own`.
#[derive(Debug)]
struct Acme;

impl TenantLookup for Acme {
    fn limit(
        &self,
        tenant: &[u8],
        base: &Arc<Limit>,
        plans: Option<&QuotasByValue>,
    ) -> Option<Arc<Limit>> {
        match (tenant, base.name()) {
            (b"acme", "own") => Some(Arc::new(base.for_tenant(7, None).unwrap())),
            (b"acme", _) => Some(Arc::clone(plans?.of(b"pro").unwrap_or(base))),
            _ => None,
        }
    }
}

const LIMITS: &str = "
limits:
  calls: { quota: { by: plan, values: { free: 60, pro: 6_000 }, default: 30 }, window: 1m, per: org }
  own: { quota: 5, window: 1m, per: org }
  either: { quota: { by: tier, values: { free: 60, pro: 6_000 }, default: 30 }, window: 1m, per: org }
rules: [{ match: { has: org }, limits: [calls, own, either] }]
";

fn file(tenants: &str) -> String {
    let subjects = "subjects: { org: { header: x-org, trusted: true }, \
                    key: { header: authorization }, free: { header: x-free }, \
                    tier: { header: x-tier, trusted: true } }";
    format!("{subjects}\ntenants: {tenants}\n{LIMITS}")
}

fn quota(tenants: &str, limit: &str, subject: &[(&str, Option<&str>)]) -> u64 {
    let text = file(tenants);
    // Only one word refers to the plan of the tenant. If `tenants` sets the word `tier`, the limits
    // use `tier` in place of `plan`.
    let text = if tenants.contains("tier") { text.replace("by: plan", "by: tier") } else { text };
    let policy = parse("shop.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}")).policy;
    let policy = policy.with_tenant_rows(Arc::new(Acme));
    let named = Named { limit, cost: Cost::ONE, subject };
    policy.plan_named([named], &Sum).unwrap().planned[0].limit.quota_per_window().0
}

#[test]
fn the_row_of_the_tenant_selects_the_quota() {
    let (acme, other) = (("org", Some("acme")), ("org", Some("other")));
    let by_org = "{ by: org }";
    assert_eq!(quota(by_org, "calls", &[acme]), 6_000);
    assert_eq!(quota(by_org, "calls", &[other]), 30);
    assert_eq!(quota(by_org, "own", &[acme]), 7);
    assert_eq!(quota(by_org, "own", &[other]), 5);
    // For a tenant without a plan, the value of the subject `tier` is the plan.
    let tier = "{ by: org, plan: tier }";
    assert_eq!(quota(tier, "either", &[acme, ("tier", Some("free"))]), 6_000);
    assert_eq!(quota(tier, "either", &[other, ("tier", Some("free"))]), 60);
    assert_eq!(quota(by_org, "either", &[acme, ("tier", Some("free"))]), 60);
}

#[test]
fn quotas_by_the_plan_of_the_tenant_are_explained() {
    let explanation = explain(&parse("shop.yaml", &file("{ by: org }")).unwrap()).to_string();
    assert!(explanation.contains("; by plan of the tenant: free 60, pro 6000"), "{explanation}");
}

#[test]
fn the_subject_of_tenants_is_known_clear_and_trusted() {
    for (tenants, mistake) in [
        ("{ by: orga }", "unknown subject \"orga\""),
        ("{ by: key }", "hashed"),
        ("{ by: free }", "clients can choose the value of \"free\""),
        ("{ plan: tier }", "by"),
        ("{ by: org, plans: tier }", "plans"),
    ] {
        let error = parse("shop.yaml", &file(tenants)).err().map(|error| error.to_string());
        let error = error.unwrap_or_else(|| panic!("{tenants} is accepted"));
        assert!(error.contains(mistake), "{tenants}: {error}");
        assert!(error.contains("shop.yaml:2:"), "{tenants}: {error}");
    }
}
