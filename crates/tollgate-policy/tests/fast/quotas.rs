//! Quotas that depend on the value of a subject.

use tollgate_core::policy::Named;
use tollgate_core::{Cost, Headers, KeyedHash, Limit, Policy, RequestAttributes};
use tollgate_policy::{explain, parse};

struct Sum;

impl KeyedHash for Sum {
    fn hash(&self, bytes: &[u8]) -> [u8; 16] {
        [bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte)); 16]
    }
}

const POLICY: &str = "
subjects:
  user: { header: x-user }
  plan: { header: x-plan, trusted: true }
  method: { method: {} }
  either: { first_of: [plan, method] }
limits:
  window: { quota: { by: plan, values: { free: 60, pro: 6_000 }, default: 30 }, window: 1m, per: user, enforce: 50% }
  bucket: { algorithm: token_bucket, quota: { by: plan, values: { pro: 600 }, default: 60 },
            burst: { by: plan, values: { pro: 50, trial: 1 }, default: 5 }, window: 1m, per: user }
  plain-burst: { algorithm: token_bucket, quota: { by: plan, values: { pro: 600 }, default: 60 }, window: 1m, per: user }
  running: { algorithm: concurrency, quota: { by: either, values: { pro: 9, GET: 3 }, default: 1 }, per: user }
rules: [{ match: { has: user }, limits: [window, bucket, plain-burst, running] }]
";

fn policy() -> Policy {
    parse("shop.yaml", POLICY).unwrap_or_else(|mistakes| panic!("{mistakes}")).policy
}

fn numbers(limit: &Limit) -> String {
    format!("{} {}/{}", limit.name(), limit.quota_per_window().0, limit.capacity())
}

struct Fields(Vec<(&'static str, &'static [u8])>);

impl Headers for Fields {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        self.0.as_slice().value(name, index)
    }
}

fn charged(method: &str, plan: Option<&'static [u8]>) -> Vec<String> {
    let mut fields: Vec<(&'static str, &'static [u8])> = vec![("x-user", b"ann")];
    fields.extend(plan.map(|plan| ("x-plan", plan)));
    let headers = Fields(fields);
    let attributes = RequestAttributes {
        method,
        path: "/",
        query: None,
        host: None,
        peer: None,
        headers: &headers,
    };
    let policy = policy();
    policy.plan(&attributes, &Sum).enforced.iter().map(|one| numbers(&one.limit)).collect()
}

#[test]
fn the_value_selects_quota_and_burst() {
    let pro = ["window 6000/6000", "bucket 600/50", "plain-burst 600/600", "running 9/9"];
    assert_eq!(charged("GET", Some(b"pro")), pro);
    assert_eq!(charged("GET", Some(b" pro ")), pro);
    let free = ["window 60/60", "bucket 60/5", "plain-burst 60/60", "running 1/1"];
    assert_eq!(charged("GET", Some(b"free")), free);
    let trial = ["window 30/30", "bucket 60/1", "plain-burst 60/60", "running 1/1"];
    assert_eq!(charged("GET", Some(b"trial")), trial);
}

#[test]
fn another_value_or_none_has_the_default() {
    let default = ["window 30/30", "bucket 60/5", "plain-burst 60/60"];
    for unknown in [&b"PRO"[..], b"prof", b"\xff", b"plan:pro"] {
        assert_eq!(charged("POST", Some(unknown))[..3], default);
    }
    assert_eq!(charged("POST", None), [&default[..], &["running 1/1"]].concat());
    assert_eq!(charged("GET", None), [&default[..], &["running 3/3"]].concat());
}

#[test]
fn every_quota_uses_the_counters_and_the_share_of_its_limit() {
    let policy = policy();
    let base = &policy.limits()[0].limit;
    for limit in policy.quotas_of(base).unwrap().limits() {
        assert_eq!(limit.state_digest(), base.state_digest());
        assert_eq!(limit.enforced(), base.enforced());
    }
}

#[test]
fn a_charge_by_name_gives_the_value_or_has_the_default() {
    let policy = policy();
    let by_name = |limit: &str, subject: &[(&str, Option<&str>)]| {
        let named = Named { limit, cost: Cost::ONE, subject };
        policy.plan_named([named], &Sum).map(|plan| numbers(&plan.planned[0].limit))
    };
    let user = ("user", Some("ann"));
    assert_eq!(by_name("window", &[user, ("plan", Some("pro"))]).unwrap(), "window 6000/6000");
    assert_eq!(by_name("window", &[user, ("plan", None)]).unwrap(), "window 30/30");
    assert_eq!(by_name("window", &[user]).unwrap(), "window 30/30");
    assert_eq!(by_name("running", &[user, ("either", Some("method:GET"))]).unwrap(), "running 3/3");
    assert!(by_name("running", &[user, ("plan", Some("pro"))]).is_err());
}

#[test]
fn two_charges_on_one_counter_have_one_quota() {
    let policy = policy();
    let pro = [("user", Some("ann")), ("plan", Some("pro"))];
    let free = [("user", Some("ann")), ("plan", Some("free"))];
    let named = |subject| Named { limit: "window", cost: Cost::ONE, subject };
    let plan = policy.plan_named([named(&pro[..]), named(&free[..])], &Sum).unwrap();
    assert_eq!(plan.planned.len(), 1);
    assert_eq!(
        (numbers(&plan.planned[0].limit), plan.planned[0].cost.get()),
        ("window 6000/6000".to_owned(), 2)
    );
}

#[test]
fn quotas_by_value_are_explained() {
    let explanation = explain(&parse("shop.yaml", POLICY).unwrap()).to_string();
    let line = "30 requests per 1m for each user; by plan: free 60, pro 6000; enforced for 50% of the subjects";
    assert!(explanation.contains(line), "{explanation}");
    let line = "60 requests per 1m, at most 5 at once for each user; by plan: pro 600, at most 50 at once, trial 60, at most 1 at once";
    assert!(explanation.contains(line), "{explanation}");
}
